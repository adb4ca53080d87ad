/**
 * Every message of every instance, whatever its network: what was sent, what arrived, and how far it got. A message is
 * recorded as an intent before the network sees it and settled when the network took it, so that a process that
 * dies in between leaves something that the repeated request finds.
 */
import { z } from 'zod';
import { AudioMessage } from '../contract/gateway.ts';
import { MessageKey, MessageStatus } from '../contract/job.ts';
import type { Redis } from '../queue/redis.ts';
import { RedisScript } from '../queue/script.ts';
import { EVENT_STREAM, EVENT_STREAM_LENGTH, envelope } from './event-stream.ts';
import { gatewayKey } from './redis-keys.ts';

const MessageRecord = z.object({
  instanceId: z.string(),
  instanceName: z.string(),
  ownJid: z.string(),
  key: MessageKey,
  /** Who wrote it, where that was somebody else. */
  authorJid: z.string().optional(),
  authorName: z.string().optional(),
  timestampSeconds: z.int(),
  message: z.object({ audioMessage: AudioMessage }),
  context: z.object({
    quoted: z.object({ id: z.string(), text: z.string().optional() }).optional(),
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
}

export interface ChatSummary {
  readonly jid: string;
  readonly updatedAtMs: number;
  readonly unreadCount: number;
}

/** Later words have higher ranks; ERROR is only reached by what no device has received yet, and is final. */
const STATUS_RANK: Readonly<Record<MessageStatus, number>> = {
  PENDING: 1,
  SERVER_ACK: 2,
  ERROR: 3,
  DELIVERY_ACK: 4,
  READ: 5,
  PLAYED: 6,
};

/**
 * Settles a message and moves its status forward, never back, with the events of both. Receipts may overtake the
 * network's own acknowledgement, so a status alone also settles: the network evidently took the message.
 */
const settleScript = new RedisScript(`
local message, chat, chats, unread, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local rank, word, now, id, jid, incoming = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local instanceId, upsert, update, length, oldest = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local current = redis.call('HGET', message, 'rank')
if not current then return 0 end
if redis.call('HSETNX', message, 'settled', '1') == 1 then
  redis.call('ZADD', chat, now, id)
  redis.call('ZREMRANGEBYSCORE', chat, '-inf', oldest)
  redis.call('ZADD', chats, now, jid)
  if incoming == '1' then redis.call('HINCRBY', unread, jid, 1) end
  redis.call('XADD', events, 'MAXLEN', '~', length, '*', 'instanceId', instanceId, 'event', 'messages.upsert', 'envelope', upsert)
end
if tonumber(current) >= rank or redis.call('HGET', message, 'status') == 'ERROR' then return 0 end
redis.call('HSET', message, 'rank', rank, 'status', word)
redis.call('XADD', events, 'MAXLEN', '~', length, '*', 'instanceId', instanceId, 'event', 'messages.update', 'envelope', update)
return 1
`);

const intendScript = new RedisScript(`
if redis.call('HSETNX', KEYS[1], 'record', ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], 'rank', ARGV[2], 'status', ARGV[3])
  redis.call('EXPIRE', KEYS[1], ARGV[4])
end
return redis.call('HGET', KEYS[1], 'record')
`);

const messageKey = (instanceId: string, messageId: string): string =>
  gatewayKey('message', instanceId, messageId);
const chatKey = (instanceId: string, jid: string): string => gatewayKey('chat', instanceId, jid);
const chatsKey = (instanceId: string): string => gatewayKey('chats', instanceId);
const unreadKey = (instanceId: string): string => gatewayKey('unread', instanceId);

export class MessageLog {
  readonly #redis: Redis;
  readonly #keepSeconds: number;

  /** @param keepSeconds how long a message is kept; not longer than its media. */
  constructor(redis: Redis, keepSeconds: number) {
    this.#redis = redis;
    this.#keepSeconds = Math.ceil(keepSeconds);
  }

  /** Records what is about to be sent. Answers the earlier record when this id was recorded before. */
  async intend(record: MessageRecord, status: MessageStatus = 'PENDING'): Promise<MessageRecord> {
    const stored = await intendScript.run(
      this.#redis,
      [messageKey(record.instanceId, record.key.id)],
      [JSON.stringify(record), STATUS_RANK[status], status, this.#keepSeconds],
    );
    return MessageRecord.parse(JSON.parse(z.string().parse(stored)));
  }

  async find(instanceId: string, messageId: string): Promise<LoggedMessage | undefined> {
    const [record, status, settled] = await this.#redis.hmget(
      messageKey(instanceId, messageId),
      'record',
      'status',
      'settled',
    );
    return parseLogged(record, status, settled);
  }

  /** The network took the message: it appears in its chat. */
  async settle(record: MessageRecord): Promise<void> {
    await this.#settle(record, record.key.fromMe ? 'PENDING' : 'DELIVERY_ACK');
  }

  /** Moves a status forward. Answers whether it moved; an unknown message does not. */
  async advance(instanceId: string, messageId: string, status: MessageStatus): Promise<boolean> {
    const logged = await this.find(instanceId, messageId);
    return logged === undefined ? false : this.#settle(logged, status);
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

  async forget(instanceId: string): Promise<void> {
    const chats = await this.chats(instanceId);
    const keys = [chatsKey(instanceId), unreadKey(instanceId)];
    for (const { jid } of chats) {
      const ids = await this.#redis.zrange(chatKey(instanceId, jid), '0', '-1');
      keys.push(chatKey(instanceId, jid), ...ids.map((id) => messageKey(instanceId, id)));
    }
    await this.#redis.unlink(...keys);
  }

  async #settle(record: MessageRecord, status: MessageStatus): Promise<boolean> {
    const { instanceId, key, ownJid } = record;
    const instance = { name: record.instanceName };
    const now = Date.now();
    const moved = await settleScript.run(
      this.#redis,
      [
        messageKey(instanceId, key.id),
        chatKey(instanceId, key.remoteJid),
        chatsKey(instanceId),
        unreadKey(instanceId),
        EVENT_STREAM,
      ],
      [
        STATUS_RANK[status],
        status,
        now,
        key.id,
        key.remoteJid,
        key.fromMe ? '0' : '1',
        instanceId,
        envelope(instance, ownJid, 'messages.upsert', upsertData(record, 'PENDING')),
        envelope(instance, ownJid, 'messages.update', { key, status }),
        EVENT_STREAM_LENGTH,
        now - this.#keepSeconds * 1000,
      ],
    );
    return moved === 1;
  }
}

function upsertData(record: MessageRecord, status: MessageStatus): unknown {
  return {
    key: record.key,
    pushName: record.authorName,
    message: record.message,
    messageTimestamp: String(record.timestampSeconds),
    status: record.key.fromMe ? status : 'DELIVERY_ACK',
  };
}

function parseLogged(
  record: string | null | undefined,
  status: string | null | undefined,
  settled: string | null | undefined,
): LoggedMessage | undefined {
  if (typeof record !== 'string') {
    return undefined;
  }
  return {
    ...MessageRecord.parse(JSON.parse(record)),
    status: MessageStatus.parse(status),
    settled: settled === '1',
  };
}
