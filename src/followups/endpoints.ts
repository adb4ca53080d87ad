/**
 * What attempts have shown of the endpoints a key posts to (decisions D): scheme, host, port and
 * path. A key sees only its own attempts, so no key learns of another's or slows it down.
 */
import { createHash } from 'node:crypto';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { ofItsType, readable, readText, unlessUnreadable } from 'soundpost-kit/redis/record';
import { z } from 'zod';

/** Failures in a row after which an endpoint is failing; one, if it has never answered. */
export const FAILING_AFTER = 3;
/** How long an endpoint is remembered: longer than the longest gap between attempts. */
export const REMEMBERED_SECONDS = 2 * 24 * 60 * 60;
/** Deliveries listed for each endpoint, the newest. */
export const MOST_LISTED = 1000;
/** Endpoints remembered for each key, those asked last. */
export const MOST_ENDPOINTS = 500;

/** Written by lua/try-place-leave.lua. Times are ms since the epoch, on Redis' clock. */
const EndpointState = z.object({
  /** Without a query. */
  endpoint: z.string(),
  /** In a row. */
  failures: z.int(),
  /** When these began. */
  failedSince: z.number().optional(),
  /** Whether it has ever answered with less than 500. */
  hasAnswered: z.boolean(),
  /** Its last status; 0 if it gave none. */
  lastAnswer: z.int(),
  lastAt: z.number(),
});
type EndpointState = z.infer<typeof EndpointState>;

export interface Endpoint {
  /** Scheme, host and port. */
  readonly host: string;
  /** The host with the path, without a query, the same for all spellings. */
  readonly endpoint: string;
}

const ESCAPED = /%[0-9a-f]{2}/gi;
const UNRESERVED = /[\w.~-]/;

/** @param url absolute, http or https */
export function endpointOf(url: string): Endpoint {
  // The parser resolves dot segments and default ports; the rest is RFC 3986, 6.2.2.
  const { protocol, hostname, port, pathname } = new URL(url);
  const host = `${protocol}//${hostname.replace(/\.$/, '')}${port && `:${port}`}`;
  const path = pathname.replace(ESCAPED, (octet) => {
    const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16));
    return UNRESERVED.test(character) ? character : octet.toUpperCase();
  });
  return { host, endpoint: `${host}${path}` };
}

/** Set: ids of the key's deliveries to an endpoint that have not ended. */
export const pendingKey = (key: string, endpoint: string): string =>
  ownKey('pending', key, digestOf(endpoint));

/** Sorted set: ids of the key's deliveries to an endpoint, by when the event happened, ms. */
export const sentKey = (key: string, endpoint: string): string => ownKey('sent', key, digestOf(endpoint));

/** Names an endpoint in Redis' keys: addresses are long, and can contain anything. */
export function digestOf(endpoint: string): string {
  return createHash('sha256').update(endpoint).digest('hex').slice(0, 32);
}

/**
 * When an endpoint of the key began to fail, ms since the epoch; undefined if it does not.
 * @param places name of the slots of its attempts
 */
export async function failingSinceMs(
  redis: Redis,
  places: string,
  key: string,
  url: string,
): Promise<number | undefined> {
  const text = await redis.hget(statesKey(places, key), digestOf(endpointOf(url).endpoint));
  const [state] = readable(text === null ? [] : [text], (one) => readText(EndpointState, one));
  return state && failingSince(state);
}

const statesKey = (places: string, key: string): string => `${ownKey('places', places)}:endpoints:${key}`;

function failingSince({ failures, failedSince, hasAnswered }: EndpointState): number | undefined {
  return failures >= (hasAnswered ? FAILING_AFTER : 1) ? failedSince : undefined;
}

interface ShownEndpoint extends Pick<EndpointState, 'endpoint' | 'failures' | 'lastAnswer' | 'lastAt'> {
  /** ms since the epoch; undefined if it is not failing. */
  readonly failingSinceMs: number | undefined;
}

/** The endpoints of the key that are remembered, asked last first. */
export async function readEndpoints(redis: Redis, places: string, key: string): Promise<ShownEndpoint[]> {
  const stored = await unlessUnreadable(
    () => ofItsType(redis.hvals(statesKey(places, key))),
    () => [],
  );
  const states = readable(stored, (one) => readText(EndpointState, one));
  return states
    .map((state) => ({ ...state, failingSinceMs: failingSince(state) }))
    .toSorted((one, other) => other.lastAt - one.lastAt || (one.endpoint < other.endpoint ? -1 : 1));
}
