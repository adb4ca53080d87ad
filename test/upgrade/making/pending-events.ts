/** What the gateway of the first edition has still to tell, read from its Redis. The only program that knows how it kept that. */
import type { Redis } from 'ioredis';
import type { Json } from '../../client.ts';
import { until } from '../../until.ts';
import type { GatewayManifest } from '../manifest.ts';

const key = (name: string): string => `{soundpost}:gateway:${name}`;

interface Pending {
  /** By webhook-id, for the instances that have a webhook. */
  readonly webhooks: GatewayManifest['webhooks']['pending'];
  readonly statuses: readonly string[];
  /** Whether the loopback network has messages that it has not delivered. */
  readonly isRelayWaiting: boolean;
}

export function pendingEvents(redis: Redis) {
  /** Entries of the stream that a group has not finished: those that it took, and those that it has not seen. */
  const unfinished = async (group: string): Promise<{ id: string; event: string; envelope: Json }[]> => {
    const groups = (await redis.xinfo('GROUPS', key('events'))) as string[][];
    const found = groups.find((fields) => fields[1] === group) ?? [];
    const last = String(found[found.indexOf('last-delivered-id') + 1]);
    const taken = (await redis.xpending(key('events'), group, '-', '+', 1000)) as [string, ...unknown[]][];
    const entries = await redis.xrange(key('events'), '-', '+');
    return entries
      .filter(([id]) => taken.some(([pending]) => pending === id) || isAfter(id, last))
      .map(([id, [, , , event = '', , envelope = '']]) => ({ id, event, envelope: JSON.parse(envelope) }));
  };
  const postponed = async (): Promise<Json[]> =>
    Object.values(await redis.hgetall(key('webhook-deliveries'))).map((text) => JSON.parse(text));
  return {
    /** How many deliveries were refused and wait for their next try. */
    postponed: async () => (await postponed()).filter(({ attempts }) => attempts > 0).length,
    /** Ids of the messages of all instances. */
    messageIds: async () => (await redis.keys(key('message:*'))).map((name) => name.split(':').at(-1) ?? ''),
    async untilAllAreTold() {
      await until('no webhook to be pending', async () => {
        const [left, unread] = await Promise.all([postponed(), unfinished('webhooks')]);
        return left.length === 0 && unread.length === 0;
      });
    },
    async read(instances: readonly string[]): Promise<Pending> {
      const webhooks = new Map<string, Json>();
      for (const { eventId, envelope } of await postponed()) webhooks.set(eventId, JSON.parse(envelope));
      for (const { id, event, envelope } of await unfinished('webhooks')) {
        // As long as nobody asks for presences, they are told to nobody.
        if (instances.includes(envelope.instance) && event !== 'presence.update') webhooks.set(id, envelope);
      }
      const ids = [...webhooks.keys()].sort((one, other) => (isAfter(one, other) ? 1 : -1));
      const relayed = await unfinished('events-url');
      return {
        webhooks: ids.map((id) => ({ id: `evt_${id}`, envelope: webhooks.get(id) })),
        statuses: relayed.filter(({ event }) => event === 'messages.update').map(({ id }) => `evt_${id}`),
        isRelayWaiting: (await redis.xlen(key('loopback:work'))) > 0,
      };
    },
  };
}

/** Whether one entry of a stream comes after another. */
function isAfter(one: string, other: string): boolean {
  const [ms = 0, count = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherCount = 0] = other.split('-').map(Number);
  return ms > otherMs || (ms === otherMs && count > otherCount);
}
