/**
 * The gateway's lease as Redis has it: which process serves, until when, by Redis' clock.
 *
 * It is kept under the key where gateways of the first edition keep their leases as a sorted set. So the two never serve
 * together: this one waits until none of those leases lasts, and every script of those fails on a key of another type.
 */
import { z } from 'zod';
import type { Redis } from '../../redis/connection.ts';
import { RedisScript } from '../../redis/script.ts';
import { gatewayKey } from '../redis-keys.ts';

/** `<fencing token> <id of the process> <home of the process>` of the holder; see process-home.ts for the last. */
export const LEASE = gatewayKey('replicas');
const TOKENS = gatewayKey('owner-tokens');
/** What the first edition knew of its processes and of what each of them had. */
const FIRST_EDITION = [gatewayKey('replica-places'), gatewayKey('owners'), gatewayKey('instance-states')];

/** The token grows with each change of hands. A process that has it already gets a new one, for the answer may have been lost. */
const takeScript = new RedisScript(`
local lease, tokens = KEYS[1], KEYS[2]
local id, home, leaseMs = unpack(ARGV)
local kind = redis.call('TYPE', lease).ok
if kind == 'zset' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if redis.call('ZCOUNT', lease, '(' .. now, '+inf') > 0 then return {0, ''} end
elseif kind == 'string' then
  local holder = redis.call('GET', lease)
  if string.match(holder, '^%d+ (%S+)') ~= id then return {0, holder} end
end
redis.call('DEL', lease, unpack(KEYS, 3))
local holder = redis.call('INCR', tokens) .. ' ' .. id .. ' ' .. home
redis.call('SET', lease, holder, 'PX', leaseMs)
return {1, holder}
`);

const renewScript = new RedisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`);

const releaseScript = new RedisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`);

const Taken = z.tuple([z.union([z.literal(0), z.literal(1)]), z.string()]);

interface Applicant {
  /** Of the process; no other has had it. */
  readonly id: string;
  readonly home: string;
}

/** @returns who has the lease now; `holder` is empty while a gateway of the first edition serves */
export async function takeLease(
  redis: Redis,
  { id, home }: Applicant,
  leaseMs: number,
): Promise<{ readonly isTaken: boolean; readonly holder: string }> {
  const keys = [LEASE, TOKENS, ...FIRST_EDITION];
  const [taken, holder] = Taken.parse(await takeScript.run(redis, keys, [id, home, leaseMs]));
  return { isTaken: taken === 1, holder };
}

/** Answers false when the lease is over or another's. */
export async function renewLease(redis: Redis, holder: string, leaseMs: number): Promise<boolean> {
  return (await renewScript.run(redis, [LEASE], [holder, leaseMs])) === 1;
}

/** Ends the lease of this holder: whoever waits for it need not wait for its end. */
export async function releaseLease(redis: Redis, holder: string): Promise<void> {
  await releaseScript.run(redis, [LEASE], [holder]);
}

/** The home of the process that holds the lease. */
export function homeOf(holder: string): string {
  return holder.split(' ').slice(2).join(' ');
}
