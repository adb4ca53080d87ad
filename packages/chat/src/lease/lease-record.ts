/** The gateway's lease as Redis has it: which process serves, until when, by Redis' clock. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { gatewayKey } from '../redis-keys.ts';

/** `<fencing token> <id of the process> <home of the process>` of the holder; see process-home.ts for the last. */
export const LEASE = gatewayKey('lease');
const TOKENS = gatewayKey('lease-tokens');

const takeScript = loadScript(new URL('./lua/gateway-lease-take.lua', import.meta.url));
const renewScript = loadScript(new URL('./lua/gateway-lease-renew.lua', import.meta.url));
const releaseScript = loadScript(new URL('./lua/gateway-lease-release.lua', import.meta.url));

const Taken = z.tuple([z.union([z.literal(0), z.literal(1)]), z.string()]);

interface Applicant {
  /** Of the process; no other has had it. */
  readonly id: string;
  readonly home: string;
}

/** @returns who has the lease now */
export async function takeLease(
  redis: Redis,
  { id, home }: Applicant,
  leaseMs: number,
): Promise<{ readonly isTaken: boolean; readonly holder: string }> {
  const [taken, holder] = Taken.parse(await takeScript.run(redis, [LEASE, TOKENS], [id, home, leaseMs]));
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
