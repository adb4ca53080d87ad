/** A value of Redis as plain data, read and written with everything that belongs to it. */
import type { Redis } from 'ioredis';

export type StoredValue =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'hash'; readonly fields: Readonly<Record<string, string>> }
  | { readonly type: 'list' | 'set'; readonly members: readonly string[] }
  /** Members with their scores. */
  | { readonly type: 'zset'; readonly scores: readonly (readonly [string, string])[] }
  | { readonly type: 'stream'; readonly stream: StoredStream };

interface StoredStream {
  readonly entries: readonly (readonly [id: string, fields: readonly string[]])[];
  readonly lastId: string;
  readonly groups: readonly StoredGroup[];
}

interface StoredGroup {
  readonly name: string;
  readonly lastDeliveredId: string;
  /** What was taken and not acknowledged. */
  readonly pending: readonly {
    readonly id: string;
    readonly consumer: string;
    readonly idleMs: number;
    readonly deliveries: number;
  }[];
}

/** @returns undefined when there is no such key, or no more */
export async function readValue(redis: Redis, key: string): Promise<StoredValue | undefined> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return { type, value: (await redis.get(key)) ?? '' };
    case 'hash':
      return { type, fields: await redis.hgetall(key) };
    case 'list':
      return { type, members: await redis.lrange(key, 0, -1) };
    case 'set':
      return { type, members: (await redis.smembers(key)).sort() };
    case 'zset':
      return { type, scores: pairs(await redis.zrange(key, '0', '-1', 'WITHSCORES')) };
    case 'stream':
      return { type, stream: await readStream(redis, key) };
    case 'none':
      return undefined;
    default:
      throw new Error(`a snapshot cannot hold ${type}, the type of ${key}`);
  }
}

async function readStream(redis: Redis, key: string): Promise<StoredStream> {
  const info = byName(await redis.xinfo('STREAM', key));
  const groups = (await redis.xinfo('GROUPS', key)) as unknown[];
  return {
    entries: (await redis.xrange(key, '-', '+')).map(([id, fields]) => [id, fields] as const),
    lastId: String(info['last-generated-id']),
    groups: await Promise.all(
      groups.map(async (flat) => {
        const group = byName(flat);
        const name = String(group.name);
        const pending = (await redis.xpending(key, name, '-', '+', 1000)) as [
          string,
          string,
          number,
          number,
        ][];
        return {
          name,
          lastDeliveredId: String(group['last-delivered-id']),
          pending: pending.map(([id, consumer, idleMs, deliveries]) => ({
            id,
            consumer,
            idleMs,
            deliveries,
          })),
        };
      }),
    ),
  };
}

function byName(flat: unknown): Record<string, unknown> {
  const items = flat as unknown[];
  return Object.fromEntries(
    items.flatMap((name, index) => (index % 2 === 0 ? [[String(name), items[index + 1]]] : [])),
  );
}

function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((member, index) =>
    index % 2 === 0 ? [[member, flat[index + 1] ?? ''] as [string, string]] : [],
  );
}

/** @param move moves the moments in a text @param byMs by how much it does */
export async function writeValue(
  redis: Redis,
  key: string,
  stored: StoredValue,
  move: (text: string) => string,
  byMs: number,
): Promise<void> {
  switch (stored.type) {
    case 'string':
      await redis.set(key, move(stored.value));
      return;
    case 'hash':
      await redis.hset(key, ...Object.entries(stored.fields).flat().map(move));
      return;
    case 'list':
      await redis.rpush(key, ...stored.members.map(move));
      return;
    case 'set':
      await redis.sadd(key, ...stored.members.map(move));
      return;
    case 'zset':
      await redis.zadd(
        key,
        ...stored.scores.flatMap(([member, score]) => [movedScore(key, score, move, byMs), move(member)]),
      );
      return;
    case 'stream':
      await writeStream(redis, key, stored.stream, move);
  }
}

/** BullMQ's score of a delayed job is its time in ms, times 4096, plus a counter; that of a prioritised one is no time at all. */
function movedScore(key: string, score: string, move: (text: string) => string, byMs: number): string {
  if (key.endsWith(':delayed')) return String(BigInt(score) + BigInt(byMs) * 4096n);
  return key.endsWith(':prioritized') ? score : move(score);
}

async function writeStream(
  redis: Redis,
  key: string,
  { entries, lastId, groups }: StoredStream,
  move: (text: string) => string,
): Promise<void> {
  for (const [id, fields] of entries) await redis.xadd(key, move(id), ...fields.map(move));
  if (entries.length === 0) {
    await redis.xadd(key, move(lastId), 'removed', 'at once');
    await redis.xdel(key, move(lastId));
  }
  await redis.call('XSETID', key, move(lastId));
  const kept = new Set(entries.map(([id]) => id));
  for (const { name, lastDeliveredId, pending } of groups) {
    await redis.xgroup('CREATE', key, name, move(lastDeliveredId));
    for (const { id, consumer, idleMs, deliveries } of pending.filter((taken) => kept.has(taken.id))) {
      const how = ['IDLE', idleMs, 'RETRYCOUNT', deliveries, 'FORCE', 'JUSTID'];
      await redis.call('XCLAIM', key, name, consumer, 0, move(id), ...how);
    }
  }
}
