/**
 * Checks and reserves in one script what a job needs to be accepted, so concurrent submissions
 * cannot both get a key's last slot: its rate and unfinished jobs. (The queue counts jobs only once
 * added, so concurrent submissions can exceed its limit.) The script also assigns each job its
 * position (docs/decisions/0004-fairness.md).
 */

import type { Priority } from 'soundpost-contract/job-request';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RATE_WINDOW_SECONDS, type RateState, rateKey } from 'soundpost-kit/redis/rate';
import { loadScript } from 'soundpost-kit/redis/script';
import { VIRTUAL_TIME_KEY } from './names.ts';
import { OUTLOOK_KEYS, type Outlook, type OutlookAnswer, readOutlook } from './outlook.ts';

export interface SubmissionLimits {
  /** Submissions per minute for each tenant. */
  readonly submitPerMinute: number;
  /** Unfinished jobs per tenant. */
  readonly unfinishedPerTenant: number;
  /** Waiting jobs of all tenants. */
  readonly queueLimit: number;
  /** Bytes of records per minute for each tenant; default {@link RECORD_BYTES_PER_MINUTE}. */
  readonly recordBytesPerMinute?: number;
}

/** A key's records of a minute: they are kept for days, so many would fill Redis (decisions A6). */
export const RECORD_BYTES_PER_MINUTE = 16 * 1024 * 1024;

export type Reservation =
  | {
      readonly outcome: 'reserved';
      readonly rate: RateState;
      readonly priorities: readonly number[];
      /** Of the first job. */
      readonly outlook: Outlook;
    }
  | {
      readonly outcome: 'rate-limited' | 'too-many-bytes' | 'too-many-unfinished' | 'queue-full';
      /** Of submissions, with `too-many-bytes` of the records' bytes. */
      readonly rate: RateState;
    };

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996). A flow is a tenant's jobs of one priority. A
 * job starts at max(virtual time, its flow's end), the flow ends a step later. The smallest start
 * goes first; virtual time is the start of the last job with an encoder. A small step: a large
 * share.
 */
const FLOW_STEP: Readonly<Record<Priority, number>> = { high: 1, normal: 4, low: 16 };

const reserve = loadScript(new URL('./lua/reserve.lua', import.meta.url));
const giveBack = loadScript(new URL('./lua/reservation-release.lua', import.meta.url));

/**
 * For jobs reported as not accepted. Any that were added never start; the same idempotency key can
 * still submit them.
 */
export async function refuseSubmission(
  redis: Redis,
  tenant: string,
  jobIds: readonly string[],
): Promise<void> {
  await giveBack.run(redis, listsOf(tenant), [...jobIds]);
}

/** Sets of a tenant's jobs: the unfinished ones, and all. */
export const listsOf = (tenant: string): readonly [unfinished: string, all: string] => [
  unfinishedKey(tenant),
  tenantJobsKey(tenant),
];

/** Releases a removed job's reservation. */
export async function forgetReserved(redis: Redis, tenant: string, jobId: string): Promise<void> {
  await redis.multi().srem(unfinishedKey(tenant), jobId).zrem(tenantJobsKey(tenant), jobId).exec();
}

interface ReservedJob {
  readonly jobId: string;
  readonly priority: Priority;
  /** Of its record; default 0. */
  readonly bytes?: number;
}

/** @param cost against the key's submissions per minute; default: one for each job */
export async function reserveSubmission(
  redis: Redis,
  tenant: string,
  jobs: readonly ReservedJob[],
  limits: SubmissionLimits,
  nowMs: number,
  cost = jobs.length,
): Promise<Reservation> {
  const recordLimit = limits.recordBytesPerMinute ?? RECORD_BYTES_PER_MINUTE;
  const answer = (await reserve.run(
    redis,
    [
      ...OUTLOOK_KEYS,
      rateKey('submit', tenant),
      unfinishedKey(tenant),
      tenantJobsKey(tenant),
      ownKey('flows'),
      VIRTUAL_TIME_KEY,
      processorDebtKey(tenant),
      rateKey('records', tenant),
    ],
    [
      tenant,
      nowMs,
      limits.submitPerMinute,
      limits.unfinishedPerTenant,
      limits.queueLimit,
      cost,
      RATE_WINDOW_SECONDS * 1000,
      FLOW_STEP.low,
      recordLimit,
      jobs.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
      ...jobs.flatMap(({ jobId, priority }) => [jobId, FLOW_STEP[priority]]),
    ],
  )) as [Reservation['outcome'], number, number, OutlookAnswer, number[]];
  const [outcome, remaining, resetMs, outlook, priorities] = answer;
  const rate = {
    limit: outcome === 'too-many-bytes' ? recordLimit : limits.submitPerMinute,
    remaining: Math.max(0, remaining),
    resetSeconds: Math.ceil(resetMs / 1000),
  };
  if (outcome !== 'reserved') {
    return { outcome, rate };
  }
  return { outcome, rate, priorities, outlook: readOutlook(outlook) };
}

/** Ids of a tenant's jobs, scored by submission time. */
export function tenantJobsKey(tenant: string): string {
  return ownKey('jobs', tenant);
}

/** Ids of a tenant's jobs that have not ended, as far as is known. */
export function unfinishedKey(tenant: string): string {
  return ownKey('unfinished', tenant);
}

// A key's processor seconds per minute (`CPU_SECONDS_PER_MINUTE`). Jobs are charged while tools
// run, as a debt that time pays off. Above a minute's worth, new jobs queue as `low`.

export const MINUTE_MS = 60_000;

/** When the key's debt is paid off, Redis' TIME in ms; exists only while in debt. */
export function processorDebtKey(tenant: string): string {
  return ownKey('processor', tenant);
}

const charge = loadScript(new URL('./lua/processor-charge.lua', import.meta.url));

/** @param perMinute seconds @returns whether the key now owes more than a minute's worth */
export async function chargeProcessor(
  redis: Redis,
  tenant: string,
  seconds: number,
  perMinute: number,
): Promise<boolean> {
  const key = processorDebtKey(tenant);
  return (await charge.run(redis, [key], [(seconds / perMinute) * MINUTE_MS])) === 1;
}
