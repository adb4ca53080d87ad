/** What a message of WhatsApp says, as far as the gateway can show it. */
import type { WAContextInfo, WAMessageContent } from 'baileys';
import type { MessageContext } from 'soundpost-chat/transport';
import type { BaileysLibrary } from './library.ts';
import { bareJid } from './phone-jid.ts';

type AudioContent = NonNullable<WAMessageContent['audioMessage']>;

export type SeenContent =
  | { readonly kind: 'text'; readonly text: string; readonly context: MessageContext }
  | { readonly kind: 'audio'; readonly audio: AudioContent; readonly context: MessageContext };

/** What stands for content that has no words of its own. */
const labels: Readonly<Record<string, string>> = {
  imageMessage: '[image]',
  videoMessage: '[video]',
  ptvMessage: '[video]',
  documentMessage: '[document]',
  stickerMessage: '[sticker]',
  locationMessage: '[location]',
  liveLocationMessage: '[location]',
  contactMessage: '[contact]',
  contactsArrayMessage: '[contacts]',
  pollCreationMessage: '[poll]',
  pollCreationMessageV2: '[poll]',
  pollCreationMessageV3: '[poll]',
  eventMessage: '[event]',
  groupInviteMessage: '[group invitation]',
};

/** Undefined for what is no message to a person: reactions, receipts, keys. */
export function seenContent(
  library: BaileysLibrary,
  message: WAMessageContent | null | undefined,
): SeenContent | undefined {
  // Takes out what disappearing messages, messages to be seen once and edited ones are wrapped in.
  const content = library.extractMessageContent(message);
  if (!content) {
    return undefined;
  }
  const context = contextOf(content);
  if (content.audioMessage) {
    return { kind: 'audio', audio: content.audioMessage, context };
  }
  const text = textOf(content);
  return text === undefined ? undefined : { kind: 'text', text, context };
}

export function textOf(content: WAMessageContent): string | undefined {
  const written =
    content.conversation ||
    content.extendedTextMessage?.text ||
    content.imageMessage?.caption ||
    content.videoMessage?.caption ||
    content.documentMessage?.caption ||
    content.groupInviteMessage?.caption;
  if (written) {
    return written;
  }
  const kind = Object.entries(content).find(([name, value]) => value && name in labels)?.[0];
  return kind === undefined ? undefined : labels[kind];
}

function contextOf(content: WAMessageContent): MessageContext {
  const info = Object.values(content).map(contextInfoOf).find(Boolean);
  const quotedId = info?.stanzaId;
  const quotedText = info?.quotedMessage ? textOf(info.quotedMessage) : undefined;
  return {
    quoted: quotedId ? { id: quotedId, text: quotedText } : undefined,
    mentioned: (info?.mentionedJid ?? []).map(bareJid),
    mentionsEveryOne: (info?.nonJidMentions ?? 0) > 0,
    linkPreview: false,
  };
}

function contextInfoOf(part: unknown): WAContextInfo | undefined {
  return typeof part === 'object' && part !== null && 'contextInfo' in part && part.contextInfo
    ? part.contextInfo
    : undefined;
}
