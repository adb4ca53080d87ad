/**
 * What has to hold before a job is accepted, checked and taken in one script so that two submissions at once cannot both
 * have a key's last place: its rate, its number of unfinished jobs. (The length of the queue counts jobs once they
 * are added, so submissions at the same moment may pass its limit by their own number.) The script also gives each job
 * its place among the keys (docs/decisions/0004-fairness.md).
 */

import type { Priority } from 'soundpost-contract/job-request';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RATE_WINDOW_SECONDS, type RateState, rateKey } from 'soundpost-kit/redis/rate';
import { loadScript } from 'soundpost-kit/redis/script';
import { VIRTUAL_TIME_KEY } from './names.ts';
import { OUTLOOK_KEYS, type Outlook, type OutlookAnswer, readOutlook } from './outlook.ts';
import { processorDebtKey } from './processor-budget.ts';

export interface SubmissionLimits {
  /** Submissions a minute and tenant. */
  readonly submitPerMinute: number;
  /** Unfinished jobs a tenant may have. */
  readonly unfinishedPerTenant: number;
  /** Waiting jobs of everybody. */
  readonly queueLimit: number;
}

export type Reservation =
  | {
      readonly outcome: 'reserved';
      readonly rate: RateState;
      readonly priorities: readonly number[];
      /** Of the first of the jobs. */
      readonly outlook: Outlook;
    }
  | { readonly outcome: 'rate-limited' | 'too-many-unfinished' | 'queue-full'; readonly rate: RateState };

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996): a job starts at max(virtual time, the end of its flow's last job), its
 * flow ends a step later, and the queue is served in the order of starts. The virtual time is the start of the job
 * that was last given an encoder. A flow is a tenant's jobs of one priority; a smaller step takes more of the turns.
 */
const FLOW_STEP: Readonly<Record<Priority, number>> = { high: 1, normal: 4, low: 16 };

const reserve = loadScript(new URL('./lua/reserve.lua', import.meta.url));
const giveBack = loadScript(new URL('./lua/reservation-release.lua', import.meta.url));

/**
 * For jobs of which their caller hears that they were not accepted. Those that were added all the same are never started, and keep what was reserved for them
 * until a worker removes them: under the same idempotency key they may be accepted yet.
 */
export async function refuseSubmission(
  redis: Redis,
  tenant: string,
  jobIds: readonly string[],
): Promise<void> {
  await giveBack.run(redis, [ownKey('unfinished', tenant), tenantJobsKey(tenant)], [...jobIds]);
}

/** Takes back what was reserved for a job that is removed. */
export async function forgetReserved(redis: Redis, tenant: string, jobId: string): Promise<void> {
  await redis.multi().srem(ownKey('unfinished', tenant), jobId).zrem(tenantJobsKey(tenant), jobId).exec();
}

/** @param cost of the key's submissions a minute; default one a job */
export async function reserveSubmission(
  redis: Redis,
  tenant: string,
  jobs: readonly { readonly jobId: string; readonly priority: Priority }[],
  limits: SubmissionLimits,
  nowMs: number,
  cost = jobs.length,
): Promise<Reservation> {
  const answer = (await reserve.run(
    redis,
    [
      ...OUTLOOK_KEYS,
      rateKey('submit', tenant),
      ownKey('unfinished', tenant),
      tenantJobsKey(tenant),
      ownKey('flows'),
      VIRTUAL_TIME_KEY,
      processorDebtKey(tenant),
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
      ...jobs.flatMap(({ jobId, priority }) => [jobId, FLOW_STEP[priority]]),
    ],
  )) as [Reservation['outcome'], number, number, OutlookAnswer, number[]];
  const [outcome, remaining, resetMs, outlook, priorities] = answer;
  const rate = {
    limit: limits.submitPerMinute,
    remaining: Math.max(0, remaining),
    resetSeconds: Math.ceil(resetMs / 1000),
  };
  if (outcome !== 'reserved') {
    return { outcome, rate };
  }
  return { outcome, rate, priorities, outlook: readOutlook(outlook) };
}

/** Ids of a tenant's jobs, scored by the time of their submission. */
export function tenantJobsKey(tenant: string): string {
  return ownKey('jobs', tenant);
}
