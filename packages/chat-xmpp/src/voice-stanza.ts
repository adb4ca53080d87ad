/**
 * A voice message as a stanza. Clients use the best form they know: the shared file (XEP-0447), the
 * out-of-band address (XEP-0066) or the address in the text.
 */

import { parseAddress } from 'soundpost-chat/address';
import type { Chat, MessageContext } from 'soundpost-chat/transport';
import type { AudioMessage } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import type { Account } from './account.ts';
import { resolveChat } from './directory.ts';
import { type Element, xml } from './element.ts';
import { ns } from './namespaces.ts';
import type { upload } from './upload.ts';

interface VoiceStanza {
  readonly messageId: string;
  readonly to: string;
  readonly isGroup: boolean;
  readonly shared: Awaited<ReturnType<typeof upload>>;
  readonly fileName: string;
  readonly content: AudioMessage;
  readonly durationMs: number;
  readonly quoted: Quotation | undefined;
  /** JIDs. */
  readonly mentions: readonly string[];
}

interface Quotation {
  /** In a room, the room's id of the message; otherwise its own. */
  readonly id: string;
  readonly authorJid: string | undefined;
}

/**
 * The text must be the address alone, so that clients recognise a file (XEP-0066 section 3,
 * XEP-0447 section 4.1). Mentions and replies have elements of their own.
 */
export function voiceStanza(voice: VoiceStanza): Element {
  const { messageId, to, isGroup, shared, quoted, mentions } = voice;
  const stanza = xml(
    'message',
    { type: isGroup ? 'groupchat' : 'chat', to, id: messageId },
    xml('body', {}, shared.url),
    xml('origin-id', { xmlns: ns.stanzaId, id: messageId }),
    xml('x', { xmlns: ns.outOfBand }, xml('url', {}, shared.url)),
    fileSharing(voice),
    // Covers the whole text (XEP-0428 section 2.2).
    xml('fallback', { xmlns: ns.fallback, for: ns.fileSharing }, xml('body')),
    xml('markable', { xmlns: ns.chatMarkers }),
    xml('store', { xmlns: ns.hints }),
  );
  if (!isGroup) {
    // XEP-0184 §5.3: in a room, everybody would answer.
    stanza.append(xml('request', { xmlns: ns.receipts }));
  }
  stanza.append(...contextElements(quoted, mentions));
  return stanza;
}

/** Reply (XEP-0461) and mentions (XEP-0372; without a range, a mention covers the whole text). */
export function contextElements(quoted: Quotation | undefined, mentions: readonly string[]): Element[] {
  const reply = quoted && {
    xmlns: ns.reply,
    id: quoted.id,
    ...(quoted.authorJid === undefined ? {} : { to: quoted.authorJid }),
  };
  return [
    ...(reply === undefined ? [] : [xml('reply', reply)]),
    ...mentions.map((jid) => xml('reference', { xmlns: ns.reference, type: 'mention', uri: `xmpp:${jid}` })),
  ];
}

function fileSharing({ shared, fileName, content, durationMs }: VoiceStanza): Element {
  return xml(
    'file-sharing',
    { xmlns: ns.fileSharing, disposition: 'inline' },
    xml(
      'file',
      { xmlns: ns.fileMetadata },
      // Without the codec: XEP-0446's media type has no field for it.
      xml('media-type', {}, content.mimetype.split(';')[0] ?? ''),
      xml('name', {}, fileName),
      xml('size', {}, String(shared.sizeBytes)),
      // XEP-0446: milliseconds
      xml('length', {}, String(durationMs)),
      xml('hash', { xmlns: ns.hashes, algo: 'sha-256' }, content.fileSha256),
    ),
    xml('sources', {}, xml('url-data', { xmlns: ns.urlData, target: shared.url })),
  );
}

// Mentions and quotations of a voice message in XMPP's terms.

export async function quotationOf(
  { memory, log, instanceId, ownJid }: Account,
  chat: Chat,
  { quoted }: MessageContext,
): Promise<Quotation | undefined> {
  if (quoted === undefined) {
    return undefined;
  }
  const logged = await log.find(instanceId, quoted.id);
  const authorJid = logged?.key.fromMe ? ownJid : logged?.authorJid;
  const id = (chat.isGroup && (await memory.roomId(quoted.id))) || quoted.id;
  return { id, authorJid };
}

/** JIDs of the mentioned people. */
export async function mentionsOf(
  account: Account,
  chat: Chat,
  { mentioned, mentionsEveryOne }: MessageContext,
): Promise<string[]> {
  const { rooms, ownJid } = account;
  const everybody =
    mentionsEveryOne && chat.isGroup
      ? (await rooms.participants(chat.jid)).filter(({ jid }) => jid !== ownJid)
      : [];
  const named = await Promise.all(
    mentioned.map(async (text, index) => {
      const field = `mentioned[${index}]`;
      const person = await resolveChat(account, parseAddress(text, field), field);
      if (person.isGroup) {
        throw new GatewayError('bad_request', `${field}: must be a person`);
      }
      return person;
    }),
  );
  return [...new Set([...everybody, ...named].map(({ jid }) => jid))];
}
