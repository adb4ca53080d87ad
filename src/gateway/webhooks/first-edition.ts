/**
 * What the first edition had on its way when it stopped. Two consumer groups read the event stream: `webhooks`, which put
 * deliveries into structures of its own, and `events-url`, which posted statuses itself. Nothing that was acknowledged is
 * told again, and the rest in its order.
 */
import { z } from 'zod';
import { redisNow } from '../../redis/clock.ts';
import type { Redis } from '../../redis/connection.ts';
import { EVENT_STREAM, newestEventId, parseEntries, parseEvent } from '../event-stream.ts';
import { gatewayKey } from '../redis-keys.ts';
import type { EventDeliveries } from './event-deliveries.ts';

const GROUPS = ['webhooks', 'events-url'] as const;
/** When each delivery was due, ms: its score. */
const DUE = gatewayKey('webhook-due');
/** `<instance> <event>` → what follows. */
const RECORDS = gatewayKey('webhook-deliveries');
const PAGE = 500;

const Record = z.object({
  eventId: z.string(),
  instanceId: z.string(),
  envelope: z.string(),
  attempts: z.int(),
});
const Envelope = z.object({ event: z.string() });
const Groups = z.array(z.array(z.union([z.string(), z.number(), z.null()])));
const Pending = z.array(z.tuple([z.string()]).rest(z.unknown()));

/** Answers the position up to which everything is taken over; undefined when there was no first edition. */
export async function takeOverFirstEdition(
  redis: Redis,
  deliveries: EventDeliveries,
): Promise<string | undefined> {
  const positions = await groupPositions(redis);
  if (positions.size === 0) {
    return undefined;
  }
  await takeOverRecords(redis, deliveries);
  const newest = await newestEventId(redis);
  for (const [group, lastDelivered] of positions) {
    for await (const entry of unfinished(redis, group, lastDelivered, newest)) {
      const event = parseEvent(entry);
      await (group === 'webhooks' ? deliveries.addToWebhook(event) : deliveries.addToRelay(event));
    }
  }
  return newest;
}

/** Once the cursor stands, or what was delivered since would be told again. */
export async function removeFirstEdition(redis: Redis): Promise<void> {
  for (const group of (await groupPositions(redis)).keys()) {
    await redis.xgroup('DESTROY', EVENT_STREAM, group);
  }
  await redis.del(DUE, RECORDS);
}

/** The last event that each group was given. */
async function groupPositions(redis: Redis): Promise<Map<(typeof GROUPS)[number], string>> {
  const positions = new Map<(typeof GROUPS)[number], string>();
  if ((await redis.exists(EVENT_STREAM)) === 0) {
    return positions;
  }
  for (const fields of Groups.parse(await redis.xinfo('GROUPS', EVENT_STREAM))) {
    const field = (name: string): string => String(fields[fields.indexOf(name) + 1]);
    const group = GROUPS.find((known) => known === field('name'));
    if (group !== undefined) {
      positions.set(group, field('last-delivered-id'));
    }
  }
  return positions;
}

async function takeOverRecords(redis: Redis, deliveries: EventDeliveries): Promise<void> {
  const records = Object.entries(await redis.hgetall(RECORDS));
  for (const [key, text] of records) {
    const { eventId, instanceId, envelope, attempts } = Record.parse(JSON.parse(text));
    const { event } = Envelope.parse(JSON.parse(envelope));
    const dueMs = Number((await redis.zscore(DUE, key)) ?? 0);
    const delayMs = attempts === 0 ? 0 : Math.max(0, dueMs - redisNow());
    await deliveries.addToWebhook(
      { id: eventId, instanceId, event, envelope },
      { earlierTries: attempts, delayMs },
    );
  }
}

/** What the group was given and did not acknowledge, then what it was not given yet. */
async function* unfinished(redis: Redis, group: string, lastDelivered: string, newest: string) {
  for (let from = '-'; ; ) {
    const pending = Pending.parse(await redis.xpending(EVENT_STREAM, group, from, '+', PAGE));
    for (const [id] of pending) {
      // One that the stream has dropped since is lost, as it was for the first edition.
      yield* parseEntries(await redis.xrange(EVENT_STREAM, id, id));
    }
    const last = pending.at(-1)?.[0];
    if (last === undefined) {
      break;
    }
    from = `(${last}`;
  }
  for (let from = lastDelivered; ; ) {
    const entries = parseEntries(await redis.xrange(EVENT_STREAM, `(${from}`, newest, 'COUNT', PAGE));
    yield* entries;
    const last = entries.at(-1)?.id;
    if (last === undefined) {
      break;
    }
    from = last;
  }
}
