/**
 * All messages of all instances: sent, received, and their status. A message is recorded as an
 * intent before it is sent, and settled when the network has accepted it. If the process dies in
 * between, the repeated request finds the intent.
 */

import { MessageContent } from 'soundpost-contract/gateway';
import type { MessageRecordAnswer } from 'soundpost-contract/gateway-operations';
import { MessageKey, MessageStatus } from 'soundpost-contract/job';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import {
  EDITION,
  ofItsType,
  readText,
  readValue,
  unlessUnreadable,
  withEdition,
} from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { mentionedJid } from './address.ts';
import { EVENT_STREAM, EVENT_STREAM_LENGTH, envelope } from './event-stream.ts';
import { gatewayKey } from './redis-keys.ts';
import type { Chat, StatusDetails } from './transport.ts';

interface ChatSummary {
  readonly jid: string;
  readonly updatedAtMs: number;
  readonly unreadCount: number;
}

/** Later statuses rank higher. ERROR applies only before a device has the message, and is final. */
const STATUS_RANK: Readonly<Record<MessageStatus, number>> = {
  PENDING: 1,
  SERVER_ACK: 2,
  ERROR: 3,
  DELIVERY_ACK: 4,
  READ: 5,
  PLAYED: 6,
};

const settleScript = loadScript(new URL('./lua/message-settle.lua', import.meta.url));
const intendScript = loadScript(new URL('./lua/message-intend.lua', import.meta.url));
const markScript = loadScript(new URL('./lua/message-mark.lua', import.meta.url));
const moveScript = loadScript(new URL('./lua/chat-move.lua', import.meta.url));
const editScript = loadScript(new URL('./lua/message-edit.lua', import.meta.url));

/** `history` is from the archive: neither unread nor reported. */
type Arrival = 'outgoing' | 'incoming' | 'history';

const messageKey = (instanceId: string, messageId: string): string =>
  gatewayKey('message', instanceId, messageId);
const chatKey = (instanceId: string, jid: string): string => gatewayKey('chat', instanceId, jid);
const chatsKey = (instanceId: string): string => gatewayKey('chats', instanceId);
/** Our id of the message that the network knows by its own. */
const aliasKey = (instanceId: string, networkId: string): string =>
  gatewayKey('network-id', instanceId, networkId);
const unreadKey = (instanceId: string): string => gatewayKey('unread', instanceId);

export class MessageLog {
  readonly #redis: Redis;
  readonly #keepSeconds: number;

  /** @param keepSeconds how long messages are kept; at most as long as their media. */
  constructor(redis: Redis, keepSeconds: number) {
    this.#redis = redis;
    this.#keepSeconds = Math.ceil(keepSeconds);
  }

  /** Records a message about to be sent. @returns the earlier record of this id, if there is one */
  async intend(record: MessageRecord, status: MessageStatus = 'PENDING'): Promise<MessageRecord> {
    const stored = await intendScript.run(
      this.#redis,
      [messageKey(record.instanceId, record.key.id)],
      [JSON.stringify(withEdition(record)), STATUS_RANK[status], status, this.#keepSeconds],
    );
    return readText(MessageRecord, z.string().parse(stored));
  }

  /** Undefined alike if there is none, or none that can be read. */
  async find(instanceId: string, messageId: string): Promise<LoggedMessage | undefined> {
    const key = messageKey(instanceId, messageId);
    return unlessUnreadable(
      async () => parseLogged(await ofItsType(this.#redis.hmget(key, ...MESSAGE_FIELDS))),
      () => undefined,
    );
  }

  /**
   * Marks an intent as handed over, on networks that know no id of ours: from here on it may have
   * been sent. @param token of this attempt, random
   * @returns false if it was marked by another or settled; then it must not be sent again
   */
  async mark({ instanceId, key }: MessageRecord, token: string): Promise<boolean> {
    return (await markScript.run(this.#redis, [messageKey(instanceId, key.id)], [token, '1'])) === 1;
  }

  /** The network surely did not take it in this attempt: it can be sent again. */
  async unmark({ instanceId, key }: MessageRecord, token: string): Promise<void> {
    await markScript.run(this.#redis, [messageKey(instanceId, key.id)], [token, '0']);
  }

  /** Our id of a message that the network knows by its own; undefined if there is none. */
  async idOf(instanceId: string, networkId: string): Promise<string | undefined> {
    return (await this.#redis.get(aliasKey(instanceId, networkId))) ?? undefined;
  }

  /** The network accepted or delivered the message: it appears in its chat. */
  async settle(record: MessageRecord, isHistory = false): Promise<void> {
    const arrival = isHistory ? 'history' : record.key.fromMe ? 'outgoing' : 'incoming';
    await this.#settle(record, record.key.fromMe ? 'PENDING' : 'DELIVERY_ACK', arrival);
  }

  /**
   * Moves a status forward.
   * @param messageId ours or the network's
   * @returns whether it moved; false for an unknown message
   */
  async advance(
    instanceId: string,
    messageId: string,
    status: MessageStatus,
    details: StatusDetails = {},
  ): Promise<boolean> {
    const logged = await this.find(instanceId, (await this.idOf(instanceId, messageId)) ?? messageId);
    const arrival = logged?.key.fromMe ? 'outgoing' : 'incoming';
    return logged !== undefined && this.#settle(logged, status, arrival, details);
  }

  /** The message as callers and receivers of events get it, with the author of what it quotes. */
  async answer(record: MessageRecord, status: MessageStatus): Promise<MessageRecordAnswer> {
    const { quoted } = record.context;
    const found = quoted && (await this.find(record.instanceId, quoted.id));
    return messageAnswer(record, status, found);
  }

  /** Replaces the text or caption. */
  async edit(logged: LoggedMessage, text: string): Promise<void> {
    const { instanceId, instanceName, ownJid, key, status } = logged;
    const message = withText(logged.message, text);
    const update = envelope({ name: instanceName }, ownJid, 'messages.update', { key, status, message });
    await editScript.run(
      this.#redis,
      [messageKey(instanceId, key.id), EVENT_STREAM],
      [text, instanceId, update, EVENT_STREAM_LENGTH, EDITION],
    );
  }

  /** Newest first. */
  async chats(instanceId: string): Promise<ChatSummary[]> {
    const [flat, unread] = await Promise.all([
      this.#redis.zrevrange(chatsKey(instanceId), 0, -1, 'WITHSCORES'),
      this.#redis.hgetall(unreadKey(instanceId)),
    ]);
    const chats: ChatSummary[] = [];
    for (let index = 0; index + 1 < flat.length; index += 2) {
      const jid = flat[index] ?? '';
      chats.push({ jid, updatedAtMs: Number(flat[index + 1]), unreadCount: Number(unread[jid] ?? 0) });
    }
    return chats;
  }

  /** The last `limit` messages of a chat, oldest first. */
  async messages(instanceId: string, chatJid: string, limit: number): Promise<LoggedMessage[]> {
    const ids = await this.#redis.zrange(chatKey(instanceId, chatJid), String(-limit), '-1');
    const found = await Promise.all(ids.map((id) => this.find(instanceId, id)));
    return found.filter((message) => message !== undefined);
  }

  async markRead(instanceId: string, chatJid: string): Promise<void> {
    await this.#redis.hdel(unreadKey(instanceId), chatJid);
  }

  /** A group has a new id: its messages are listed under that. Their keys stay as they are. */
  async moveChat(instanceId: string, from: string, to: string): Promise<void> {
    await moveScript.run(
      this.#redis,
      [chatKey(instanceId, from), chatKey(instanceId, to), chatsKey(instanceId), unreadKey(instanceId)],
      [from, to],
    );
  }

  async forget(instanceId: string): Promise<void> {
    const chats = await this.chats(instanceId);
    const keys = [chatsKey(instanceId), unreadKey(instanceId)];
    for (const { jid } of chats) {
      const ids = await this.#redis.zrange(chatKey(instanceId, jid), '0', '-1');
      const networkIds = await Promise.all(
        ids.map((id) => this.#redis.hget(messageKey(instanceId, id), 'networkId')),
      );
      keys.push(chatKey(instanceId, jid), ...ids.map((id) => messageKey(instanceId, id)));
      keys.push(...networkIds.flatMap((id) => (id === null ? [] : [aliasKey(instanceId, id)])));
    }
    await this.#redis.unlink(...keys);
  }

  async #settle(
    record: MessageRecord,
    status: MessageStatus,
    arrival: Arrival,
    { networkId = '', error }: StatusDetails = {},
  ): Promise<boolean> {
    const { instanceId, key, ownJid } = record;
    const instance = { name: record.instanceName };
    const now = redisNow();
    const data = await this.answer(record, key.fromMe ? 'PENDING' : 'DELIVERY_ACK');
    const sentHere = key.fromMe && !record.fromOtherDevice;
    const moved = await settleScript.run(
      this.#redis,
      [
        messageKey(instanceId, key.id),
        chatKey(instanceId, key.remoteJid),
        chatsKey(instanceId),
        unreadKey(instanceId),
        EVENT_STREAM,
        aliasKey(instanceId, networkId),
      ],
      [
        STATUS_RANK[status],
        status,
        arrival === 'history' ? record.timestampSeconds * 1000 : now,
        key.id,
        key.remoteJid,
        arrival,
        instanceId,
        envelope(instance, ownJid, 'messages.upsert', data),
        envelope(instance, ownJid, 'messages.update', { key, status, ...(error && { error }) }),
        EVENT_STREAM_LENGTH,
        now - this.#keepSeconds * 1000,
        networkId,
        this.#keepSeconds,
        sentHere ? envelope(instance, ownJid, 'send.message', data) : '',
        EDITION,
      ],
    );
    return moved === 1;
  }
}

// A message as stored by the gateway.

export const MessageRecord = z.object({
  instanceId: z.string(),
  instanceName: z.string(),
  ownJid: z.string(),
  key: MessageKey,
  /** The author, unless it is the instance. */
  authorJid: z.string().optional(),
  authorName: z.string().optional(),
  /** An own message that the gateway did not send. */
  fromOtherDevice: z.boolean().optional(),
  timestampSeconds: z.int(),
  message: MessageContent,
  context: z.object({
    quoted: z
      .object({ id: z.string(), text: z.string().optional(), authorJid: z.string().optional() })
      .optional()
      .transform((quoted) => quoted && { ...quoted, text: quoted.text }),
    mentioned: z.array(z.string()).readonly(),
    mentionsEveryOne: z.boolean(),
    linkPreview: z.boolean(),
  }),
});
export type MessageRecord = z.infer<typeof MessageRecord>;

export interface LoggedMessage extends MessageRecord {
  readonly status: MessageStatus;
  /** False while the record is only an intent. */
  readonly settled: boolean;
  /** Whether it was marked as handed over ({@link MessageLog.mark}). */
  readonly marked: boolean;
  /** The network's own id, where it knows none of ours. */
  readonly networkId: string | undefined;
  /** Whether its text was changed after sending. */
  readonly edited: boolean;
}

/** The key of a message that the instance sends. */
export function ownKey(chat: Chat, ownJid: string, id: string): MessageKey {
  return { remoteJid: chat.jid, fromMe: true, id, ...(chat.isGroup && { participant: ownJid }) };
}

/** The context of a message without reply or mentions. */
export const plainContext: MessageRecord['context'] = {
  quoted: undefined,
  mentioned: [],
  mentionsEveryOne: false,
  linkPreview: false,
};

/** Fields of its Redis hash; `text` is separate, so that an edit does not rewrite the record. */
const MESSAGE_FIELDS = ['record', 'status', 'settled', 'text', 'marked', 'networkId'] as const;

function parseLogged([record, status, settled, text, marked, networkId]: (string | null)[]):
  | LoggedMessage
  | undefined {
  if (typeof record !== 'string') {
    return undefined;
  }
  const parsed = readText(MessageRecord, record);
  return {
    ...parsed,
    message: typeof text === 'string' ? withText(parsed.message, text) : parsed.message,
    status: readValue(MessageStatus, status),
    settled: settled === '1',
    marked: typeof marked === 'string',
    networkId: networkId ?? undefined,
    edited: typeof text === 'string',
  };
}

/** The content with a new text; for media, the caption. */
export function withText(content: MessageContent, text: string): MessageContent {
  if ('audioMessage' in content) return { audioMessage: { ...content.audioMessage, caption: text } };
  if ('videoMessage' in content) return { videoMessage: { ...content.videoMessage, caption: text } };
  return { conversation: text };
}

function messageAnswer(
  record: MessageRecord,
  status: MessageStatus,
  quoted: LoggedMessage | undefined,
): MessageRecordAnswer {
  const { key, authorName, message, timestampSeconds } = record;
  const contextInfo = contextInfoOf(record, quoted);
  return {
    key,
    pushName: authorName ?? null,
    message,
    ...(contextInfo && { contextInfo }),
    messageType: Object.keys(message)[0] ?? 'unknown',
    messageTimestamp: String(timestampSeconds),
    status,
  };
}

/** @param logged the quoted message, where the log has it */
function contextInfoOf(
  { context, ownJid }: MessageRecord,
  logged: LoggedMessage | undefined,
): MessageRecordAnswer['contextInfo'] {
  const { quoted, mentioned, mentionsEveryOne } = context;
  if (quoted === undefined && mentioned.length === 0 && !mentionsEveryOne) return undefined;
  // In groups a network may name the author by an alias that the log has resolved.
  const participant = logged ? authorOf(logged) : quoted?.authorJid;
  const quotedMessage = quoted?.text === undefined ? logged?.message : { conversation: quoted.text };
  return {
    ...(quoted && { stanzaId: quoted.id }),
    ...(participant !== undefined && { participant }),
    ...(quotedMessage && { quotedMessage }),
    mentionedJid: mentioned.map((text) => mentionedJid(text, ownJid)),
    ...(mentionsEveryOne && { nonJidMentions: 1 }),
  };
}

function authorOf({ key, authorJid, ownJid }: LoggedMessage): string {
  return key.participant ?? authorJid ?? (key.fromMe ? ownJid : key.remoteJid);
}
