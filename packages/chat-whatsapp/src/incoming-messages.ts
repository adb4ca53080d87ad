/** Incoming messages with their media, and edits. */

import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { WAContextInfo, WAMessage, WAMessageContent, WAMessageKey, WAMessageUpdate } from 'baileys';
import { deadline } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import {
  fetchedAs,
  type IncomingContent,
  type IncomingMessage,
  type IncomingVideo,
  incomingVideo,
  type MessageContext,
  type TransportReports,
} from 'soundpost-chat/transport';
import type { InstanceSettings } from 'soundpost-contract/gateway-instances';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { Acknowledgements } from './acknowledgements.ts';
import type { AddressBook } from './address-book.ts';
import type { Line } from './connection.ts';
import type { Groups } from './groups.ts';
import type { Identities } from './identities.ts';
import type { KeptMessages } from './kept-messages.ts';
import type { BaileysLibrary } from './library.ts';
import { fetchOptions } from './network-request.ts';
import { isGroupJid, isPersonJid } from './phone-jid.ts';
import type { Timers } from './timers.ts';

interface IncomingOptions {
  readonly instanceId: string;
  readonly ownJid: () => string;
  readonly settings: () => InstanceSettings;
  readonly reports: TransportReports;
  readonly acknowledgements: Acknowledgements;
  readonly book: AddressBook;
  readonly groups: Groups;
  readonly identities: Identities;
  readonly timers: Timers;
  readonly kept: KeptMessages;
  readonly outbound: Pick<Outbound, 'service'>;
  readonly workspaces: Pick<Workspaces, 'use'>;
  readonly logger: Logger;
}

/** Shown when the audio could not be downloaded. */
const LOST_VOICE = '[voice message]';

export class IncomingMessages {
  readonly #options: IncomingOptions;

  constructor(options: IncomingOptions) {
    this.#options = options;
  }

  async arrived(line: Line, message: WAMessage, isHistory: boolean): Promise<void> {
    const { instanceId, reports, kept, settings, workspaces, identities } = this.#options;
    const { key } = message;
    const seen = seenContent(line.library, message.message);
    const chatJid = await identities.shown(key.remoteJid, key.remoteJidAlt);
    // Channels, status updates and broadcasts are not chats.
    if (!key.id || seen === undefined || !chatJid || !(isPersonJid(chatJid) || isGroupJid(chatJid))) {
      return;
    }
    if (isGroupJid(chatJid) && settings().groupsIgnore) {
      return;
    }
    const report: Omit<IncomingMessage, 'content'> = {
      messageId: key.id,
      chatJid,
      isGroup: isGroupJid(chatJid),
      ...(await this.#author(message, chatJid)),
      fromMe: key.fromMe ?? false,
      isHistory,
      timestampSeconds: Number(message.messageTimestamp ?? Math.floor(Date.now() / 1000)),
      context: {
        ...seen.context,
        quoted: await this.#quoted(seen.context.quoted),
        mentioned: [...(await identities.shownAll(seen.context.mentioned)).values()],
      },
    };
    const notify = (content: IncomingContent): Promise<void> =>
      reports.messageArrived(instanceId, { ...report, content });
    if (!isHistory) {
      await kept.keep(line.library, message);
    }
    if (seen.kind === 'text') {
      await notify({ kind: 'text', text: seen.text });
    } else {
      await workspaces.use('received', async (folder) => notify(await this.#fetched(line, seen, folder)));
    }
    if (!key.fromMe && !isHistory && settings().readMessages) {
      await line.socket.readMessages([key]);
    }
  }

  async #quoted(quoted: MessageContext['quoted']): Promise<MessageContext['quoted']> {
    const authorJid = await this.#options.identities.shown(quoted?.authorJid);
    return quoted && { ...quoted, ...(authorJid !== undefined && { authorJid }) };
  }

  /** Learns whose address is whose, and the chat's timer. */
  async learn(line: Line, { key, message, messageTimestamp }: WAMessage): Promise<void> {
    const { identities, timers } = this.#options;
    await identities.learn(line, [
      [key.remoteJid, key.remoteJidAlt],
      [key.participant, key.participantAlt],
    ]);
    const content = line.library.extractMessageContent(message);
    const expiration = content ? infoOf(content)?.expiration : undefined;
    // Without one the timer need not be off: many clients leave it out.
    if (expiration && key.remoteJid && isPersonJid(key.remoteJid)) {
      await timers.learn(key.remoteJid, expiration, Number(messageTimestamp ?? 0));
    }
  }

  /** Handles an update that carries new content; ignores all others. */
  async updated(line: Line, { key, update }: WAMessageUpdate): Promise<void> {
    const edited = line.library.extractMessageContent(update.message?.editedMessage?.message);
    const text = edited ? textOf(edited) : undefined;
    const chatJid = await this.#options.identities.shown(key.remoteJid, key.remoteJidAlt);
    if (text !== undefined && key.id && chatJid !== undefined) {
      const authorJid = await this.#authorJid(key, chatJid);
      await this.#options.reports.messageEdited(this.#options.instanceId, {
        messageId: key.id,
        authorJid,
        text,
      });
    }
  }

  async #fetched(line: Line, { media, text }: SeenMedia, folder: string): Promise<IncomingContent> {
    const path = join(folder, 'received');
    try {
      await download(line.library, media, path, this.#options.outbound);
      return { kind: 'file', path, video: media.video };
    } catch (error) {
      const { logger, instanceId } = this.#options;
      logger.warn({ err: error, instanceId }, 'the media of a message could not be fetched');
      return { kind: 'text', text: text ?? LOST_VOICE };
    }
  }

  async #author(
    { key, pushName }: WAMessage,
    chatJid: string,
  ): Promise<{ authorJid: string; authorName: string }> {
    const authorJid = await this.#authorJid(key, chatJid);
    return { authorJid, authorName: pushName || (await this.#options.book.nameOf(authorJid)) };
  }

  async #authorJid(key: WAMessageKey, chatJid: string): Promise<string> {
    const { ownJid, identities } = this.#options;
    if (key.fromMe) {
      return ownJid();
    }
    const { participant, participantAlt } = key;
    return (isGroupJid(chatJid) && (await identities.shown(participant, participantAlt))) || chatJid;
  }
}

// Downloads the media of an incoming message. The message's fields are untrusted: a stranger wrote
// them.

interface Media {
  readonly file: Pick<
    NonNullable<WAMessageContent['audioMessage']>,
    'directPath' | 'mediaKey' | 'fileSha256' | 'mimetype'
  >;
  /** Whose keys WhatsApp encrypted it with. */
  readonly keysOf: 'audio' | 'video' | 'document';
  readonly video?: IncomingVideo;
}

interface SeenMedia {
  readonly media: Media;
  /** Told where it cannot be fetched. */
  readonly text: string | undefined;
}

/** What is fetched: sound, videos, and documents that are either. */
function mediaOf(content: WAMessageContent): Media | undefined {
  const { audioMessage, documentMessage } = content;
  const videoMessage = content.videoMessage ?? content.ptvMessage;
  if (audioMessage) return { file: audioMessage, keysOf: 'audio' };
  if (videoMessage) {
    const { mimetype, caption } = videoMessage;
    return { file: videoMessage, keysOf: 'video', video: incomingVideo(mimetype, caption) };
  }
  const kind = fetchedAs(documentMessage?.mimetype);
  if (!documentMessage || kind === undefined) return undefined;
  const { mimetype, caption } = documentMessage;
  const video = kind === 'video' ? { video: incomingVideo(mimetype, caption) } : {};
  return { file: documentMessage, keysOf: 'document', ...video };
}

/** WhatsApp accepts audio and videos up to 16 MB. */
const LONGEST_BYTES = 16 * 1024 * 1024;
const MEDIA_KEY_BYTES = 32;
/** A path and nothing that could change the host before it. */
const DIRECT_PATH = /^\/[\w./?&=%+~-]+$/;
const DOWNLOAD_TIMEOUT_MS = 60_000;

/** Writes the decrypted media to a file. Rejects if it is missing, too large or altered. */
async function download(
  library: BaileysLibrary,
  { file: { directPath, mediaKey, fileSha256 }, keysOf }: Media,
  file: string,
  outbound: Pick<Outbound, 'service'>,
): Promise<void> {
  if (!(directPath && DIRECT_PATH.test(directPath) && mediaKey?.length === MEDIA_KEY_BYTES)) {
    throw new Error('the message does not say where its media is');
  }
  using limit = deadline(DOWNLOAD_TIMEOUT_MS);
  // Pass the path only: with `url`, Baileys would connect to any host that the sender wrote.
  const stream = await library.downloadContentFromMessage({ directPath, mediaKey }, keysOf, {
    options: { ...fetchOptions(await outbound.service()), signal: limit.signal },
  });
  const hash = createHash('sha256');
  let sizeBytes = 0;
  await pipeline(
    stream,
    async function* limit(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        sizeBytes += chunk.length;
        if (sizeBytes > LONGEST_BYTES) {
          throw new Error(`the media has more than ${LONGEST_BYTES} bytes`);
        }
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(file, { mode: 0o600 }),
    { signal: limit.signal },
  );
  if (fileSha256?.length && !hash.digest().equals(Buffer.from(fileSha256))) {
    throw new Error('the media differs from the sent file: its hash does not match');
  }
}

// Reads the content of a WhatsApp message.

/** Shown for content without text. */
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

/** Undefined for anything that people do not read: reactions, receipts, keys. */
function seenContent(library: BaileysLibrary, message: WAMessageContent | null | undefined) {
  // Unwraps disappearing, view-once and edited messages.
  const content = library.extractMessageContent(message);
  if (!content) {
    return undefined;
  }
  const context = contextOf(content);
  const text = textOf(content);
  const media = mediaOf(content);
  if (media !== undefined) {
    return { kind: 'media' as const, media, text, context };
  }
  return text === undefined ? undefined : { kind: 'text' as const, text, context };
}

function textOf(content: WAMessageContent): string | undefined {
  const written =
    content.conversation ||
    content.extendedTextMessage?.text ||
    content.imageMessage?.caption ||
    content.videoMessage?.caption ||
    content.documentMessage?.caption ||
    content.groupInviteMessage?.caption ||
    chosenIn(content);
  if (written) {
    return written;
  }
  const kind = Object.entries(content).find(([name, value]) => value && name in labels)?.[0];
  return kind === undefined ? undefined : labels[kind];
}

/** What somebody chose by a button or in a list. */
function chosenIn(content: WAMessageContent): string | null | undefined {
  const { buttonsResponseMessage, listResponseMessage, interactiveResponseMessage } = content;
  return (
    buttonsResponseMessage?.selectedDisplayText ||
    buttonsResponseMessage?.selectedButtonId ||
    listResponseMessage?.title ||
    listResponseMessage?.singleSelectReply?.selectedRowId ||
    content.templateButtonReplyMessage?.selectedDisplayText ||
    content.templateButtonReplyMessage?.selectedId ||
    interactiveResponseMessage?.body?.text ||
    interactiveResponseMessage?.nativeFlowResponseMessage?.name
  );
}

function contextOf(content: WAMessageContent): MessageContext {
  const info = infoOf(content);
  const quotedId = info?.stanzaId;
  const quotedText = info?.quotedMessage ? textOf(info.quotedMessage) : undefined;
  return {
    quoted: quotedId
      ? { id: quotedId, text: quotedText, ...(info.participant && { authorJid: info.participant }) }
      : undefined,
    mentioned: info?.mentionedJid ?? [],
    mentionsEveryOne: (info?.nonJidMentions ?? 0) > 0,
    linkPreview: false,
  };
}

function infoOf(content: WAMessageContent): WAContextInfo | undefined {
  return Object.values(content).map(contextInfoOf).find(Boolean);
}

function contextInfoOf(part: unknown): WAContextInfo | undefined {
  return typeof part === 'object' && part !== null && 'contextInfo' in part && part.contextInfo
    ? part.contextInfo
    : undefined;
}
