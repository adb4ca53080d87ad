/**
 * A lease in Redis: one holder at a time over all processes. Whoever vanishes loses it by itself, and somebody who waits for
 * it can be heard by its holder.
 */

import { randomUUID } from 'node:crypto';
import type { Redis } from './connection.ts';
import { ownKey } from './keys.ts';
import { loadScript } from './script.ts';

/** How long a wish for a taken lease is remembered; whoever waits repeats it. */
const WISH_MS = 2000;

const take = loadScript(new URL('./lua/lease-take.lua', import.meta.url));
const renew = loadScript(new URL('./lua/lease-renew.lua', import.meta.url));
const release = loadScript(new URL('./lua/lease-release.lua', import.meta.url));

export interface Lease {
  /** Prolongs the lease. `wanted`: it is still held, and somebody waits for it. `lost`: another may hold it now. */
  renew(): Promise<'held' | 'wanted' | 'lost'>;
  /** Gives it back, if it is still held. */
  release(): Promise<void>;
}

interface LeaseRequest {
  /** What is leased, such as `upload:upl_0123456789abcdef`. */
  readonly name: string;
  readonly leaseMs: number;
  /** Whether a holder is to hear that somebody waits. */
  readonly asking: boolean;
}

/** Undefined while another holds it. */
export async function takeLease(
  redis: Redis,
  { name, leaseMs, asking }: LeaseRequest,
): Promise<Lease | undefined> {
  const keys = [ownKey('lease', name), ownKey('lease-wanted', name)];
  const token = randomUUID();
  const taken = await take.run(redis, keys, [token, leaseMs, asking ? WISH_MS : 0]);
  if (taken !== 1) {
    return undefined;
  }
  return {
    async renew() {
      return (await renew.run(redis, keys, [token, leaseMs])) as 'held' | 'wanted' | 'lost';
    },
    async release() {
      await release.run(redis, keys, [token]);
    },
  };
}
