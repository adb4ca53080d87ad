/**
 * What has to hold before a job is accepted, checked and taken in one script so that two submissions at once cannot both
 * have a key's last place: its rate, its number of unfinished jobs. (The length of the queue counts jobs once they
 * are added, so submissions at the same moment may pass its limit by their own number.) The script also gives each job
 * its place among the keys (docs/decisions/0004-fairness.md).
 */

import type { Priority } from 'soundpost-contract/job-request';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RATE_FUNCTION, RATE_WINDOW_SECONDS, type RateState, rateKey } from 'soundpost-kit/redis/rate';
import { RedisScript } from 'soundpost-kit/redis/script';
import { LARGEST_PRIORITY, QUEUE_PLACES, REFUSE, REFUSED, TIMES_OF } from './bullmq-internals.ts';
import { VIRTUAL_TIME_KEY } from './names.ts';
import { OUTLOOK, OUTLOOK_KEYS, type Outlook, type OutlookAnswer, readOutlook } from './outlook.ts';
import { IS_OVER_BUDGET, processorDebtKey } from './processor-budget.ts';

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

/** Virtual time is moved back to 1 long before it reaches BullMQ's largest priority. */
const REBASE_AT = Math.floor(LARGEST_PRIORITY / 2);

/** A job is added right after its reservation; one that is not there by then never will be. */
const ADDED_WITHIN_MS = 10_000;

const reserve = new RedisScript(`
local rateKey, openKey, indexKey, flowsKey, timeKey, debtKey = unpack(KEYS, ${OUTLOOK_KEYS.length + 1})
local tenant = ARGV[1]
local now, rateLimit, openLimit, queueLimit, cost = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local jobs = {}
for i = 7, #ARGV, 2 do jobs[#jobs + 1] = {id = ARGV[i], step = tonumber(ARGV[i + 1])} end
local windowMs, addedWithin = ${RATE_WINDOW_SECONDS * 1000}, ${ADDED_WITHIN_MS}
local rebaseAt, largest = ${REBASE_AT}, ${LARGEST_PRIORITY}
${RATE_FUNCTION}
${TIMES_OF}
${QUEUE_PLACES}
${OUTLOOK}
${IS_OVER_BUDGET}
local function refuse(outcome)
  local _, remaining, reset = take(rateKey, rateLimit, 0, windowMs)
  return {outcome, remaining, reset}
end

-- Whoever ended without telling us is dropped only when the set looks full: no counter that could drift.
if redis.call('SCARD', openKey) + #jobs > openLimit then
  for _, id in ipairs(redis.call('SMEMBERS', openKey)) do
    local created, finished = timesOf(id)
    local reserved = tonumber(redis.call('ZSCORE', indexKey, id) or '0')
    if finished or not created and now - reserved > addedWithin then redis.call('SREM', openKey, id) end
  end
  if redis.call('SCARD', openKey) + #jobs > openLimit then return refuse('too-many-unfinished') end
end
local queued, plain, running = lengths()
if queued + #jobs > queueLimit then return refuse('queue-full') end
local taken, remaining, reset = take(rateKey, rateLimit, cost, windowMs)
if not taken then return {'rate-limited', remaining, reset} end

local time = tonumber(redis.call('GET', timeKey) or '1')
-- Flows are forgotten when nobody waits, but the time stays: a job may come back for its next try and keep its place.
if queued == 0 and running == 0 then redis.call('DEL', flowsKey) end
if time > rebaseAt then
  -- Everything moves back by the same amount, so the order stays.
  local shift = time - 1
  shiftPriorities(shift)
  local flows = redis.call('HGETALL', flowsKey)
  for i = 1, #flows, 2 do
    redis.call('HSET', flowsKey, flows[i], math.max(1, tonumber(flows[i + 1]) - shift))
  end
  time = 1
  redis.call('SET', timeKey, time)
end
local starts = {}
local slowest = isOverBudget(debtKey, now) and ${FLOW_STEP.low} or 0
for _, job in ipairs(jobs) do
  job.step = math.max(job.step, slowest)
  local flow = tenant .. ':' .. job.step
  -- So many jobs of one flow that BullMQ has no number for their places: the last ones share one, and stand there in the order they came.
  local start = math.min(largest, math.max(time, tonumber(redis.call('HGET', flowsKey, flow) or '1')))
  redis.call('HSET', flowsKey, flow, start + job.step)
  redis.call('SADD', openKey, job.id)
  redis.call('ZADD', indexKey, now, job.id)
  starts[#starts + 1] = start
end
-- None of them is new where a submission is repeated whose answer was lost.
return {'reserved', remaining, reset, outlook(starts[1] or time), starts}
`);

const giveBack = new RedisScript(`
${REFUSE}
for _, id in ipairs(ARGV) do
  if refuse(id, '${REFUSED}') == 'absent' then
    redis.call('SREM', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  end
end
`);

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
