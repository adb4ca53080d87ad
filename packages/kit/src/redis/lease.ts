/**
 * A lease in Redis: one holder at a time over all processes. Whoever vanishes loses it by itself, and somebody who waits for
 * it can be heard by its holder.
 */

import { randomUUID } from 'node:crypto';
import type { Redis } from './connection.ts';
import { ownKey } from './keys.ts';
import { RedisScript } from './script.ts';

/** How long a wish for a taken lease is remembered; whoever waits repeats it. */
const WISH_MS = 2000;

const take = new RedisScript(`
local lease, wish = unpack(KEYS)
local token, leaseMs, wishMs = unpack(ARGV)
if redis.call('SET', lease, token, 'NX', 'PX', leaseMs) then
  redis.call('DEL', wish)
  return 1
end
if tonumber(wishMs) > 0 then redis.call('SET', wish, '1', 'PX', wishMs) end
return 0
`);

const renew = new RedisScript(`
local lease, wish = unpack(KEYS)
if redis.call('GET', lease) ~= ARGV[1] then return 'lost' end
redis.call('PEXPIRE', lease, ARGV[2])
return redis.call('EXISTS', wish) == 1 and 'wanted' or 'held'
`);

const release = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`);

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
