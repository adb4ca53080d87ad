/**
 * The events of all instances in one Redis stream, read by webhooks and live views. The script that
 * makes a change also appends its event (message-log.ts), so neither exists without the other.
 */

import type { GatewayEvent, GatewayEventData, GatewayEventName } from 'soundpost-contract/gateway-events';
import type { Redis } from 'soundpost-kit/redis/connection';
import { EDITION, readValue } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import type { Instance } from './instances.ts';
import { gatewayKey } from './redis-keys.ts';

export const EVENT_STREAM = gatewayKey('events');
/** Events kept for readers that were offline; about 1 KB each. */
export const EVENT_STREAM_LENGTH = 20_000;

interface StreamEntry {
  /** Redis' own `<milliseconds>-<counter>`. */
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

const RawEntries = z.array(z.tuple([z.string(), z.array(z.string())]));
const RawStreams = z.array(z.tuple([z.string(), RawEntries])).nullable();

/** Reads a reply of XRANGE. */
export function parseEntries(reply: unknown): StreamEntry[] {
  return RawEntries.parse(reply).map(([id, flat]) => {
    const fields: Record<string, string> = {};
    for (let index = 0; index + 1 < flat.length; index += 2) {
      fields[flat[index] ?? ''] = flat[index + 1] ?? '';
    }
    return { id, fields };
  });
}

/** Reads a reply of XREAD on one stream. */
export function parseStreams(reply: unknown): StreamEntry[] {
  return (RawStreams.parse(reply) ?? []).flatMap(([, entries]) => parseEntries(entries));
}

const StoredEvent = z.object({ instanceId: z.string(), event: z.string(), envelope: z.string() });
type StoredEvent = z.infer<typeof StoredEvent>;

export interface LiveEvent extends StoredEvent {
  /** Position in the stream; used in webhook ids and as Last-Event-ID. */
  readonly id: string;
}

/** @throws UnreadableRecord */
export function parseEvent({ id, fields }: StreamEntry): LiveEvent {
  return { id, ...readValue(StoredEvent, fields) };
}

/** `0-0` for an empty stream. */
export async function newestEventId(redis: Redis): Promise<string> {
  const [newest] = parseEntries(await redis.xrevrange(EVENT_STREAM, '+', '-', 'COUNT', 1));
  return newest?.id ?? '0-0';
}

export function envelope<Name extends GatewayEventName>(
  instance: Pick<Instance, 'name'>,
  ownJid: string,
  event: Name,
  data: GatewayEventData[Name],
): string {
  const body: GatewayEvent = {
    event,
    instance: instance.name,
    data,
    date_time: new Date().toISOString(),
    sender: ownJid,
  };
  return JSON.stringify(body);
}

/** Appends an event that changes no record, such as a presence. */
export async function appendEvent(redis: Redis, event: StoredEvent): Promise<void> {
  await redis.xadd(
    EVENT_STREAM,
    'MAXLEN',
    '~',
    EVENT_STREAM_LENGTH,
    '*',
    'version',
    EDITION,
    'instanceId',
    event.instanceId,
    'event',
    event.event,
    'envelope',
    event.envelope,
  );
}
