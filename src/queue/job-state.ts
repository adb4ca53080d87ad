/**
 * The scripts that change a job's record beside BullMQ's own: the start, progress and cancellation. Each decides and writes
 * in one step, fenced by the lock of the worker that holds the job.
 */

import { recordFields } from './job-record.ts';
import { CANCEL_CHANNEL, CHANGE_CHANNEL, jobKey, queueKey } from './names.ts';
import type { ExtractProgress } from './payloads.ts';
import type { Redis } from './redis.ts';
import { VIRTUAL_TIME_KEY } from './reservation.ts';
import { RedisScript } from './script.ts';

export type Hold =
  /** The lock is ours and the job is wanted. */
  | 'held'
  /** Somebody cancelled the job. */
  | 'cancelled'
  /** The job was given to another worker. */
  | 'lost';

const start = new RedisScript(`
local hash, lock, time = unpack(KEYS)
local token, attempt = unpack(ARGV)
if redis.call('GET', lock) ~= token then return {'lost', 0} end
local lostStarts = tonumber(redis.call('HGET', hash, '${recordFields.lostStarts}') or '0')
if redis.call('HDEL', hash, '${recordFields.working}') == 1 then
  lostStarts = redis.call('HINCRBY', hash, '${recordFields.lostStarts}', 1)
end
local attempts = redis.call('HGET', hash, '${recordFields.attempts}')
redis.call('HSET', hash, '${recordFields.attempts}', attempts and attempts .. ',' .. attempt or attempt)
local priority = tonumber(redis.call('HGET', hash, 'priority') or '0')
if priority > tonumber(redis.call('GET', time) or '0') then redis.call('SET', time, priority) end
if redis.call('HEXISTS', hash, '${recordFields.cancelled}') == 1 then return {'cancelled', lostStarts} end
return {'held', lostStarts}
`);

export interface JobStart {
  readonly hold: Hold;
  /** How many attempts at this job never came to an end of their own: their workers died, or were taken for dead. */
  readonly lostStarts: number;
}

/**
 * To be called once when a worker takes the job up: moves the virtual time of the queue on, notes the attempt before it can
 * leave files behind, counts the attempt before it when that left the job in the middle of its work, and looks before it works.
 */
export async function startJob(
  redis: Redis,
  jobId: string,
  token: string,
  attemptToken: string,
): Promise<JobStart> {
  const hash = jobKey('extract', jobId);
  const [hold, lostStarts] = (await start.run(
    redis,
    [hash, `${hash}:lock`, VIRTUAL_TIME_KEY],
    [token, attemptToken],
  )) as [Hold, number];
  return { hold, lostStarts };
}

const report = new RedisScript(`
local hash, lock = unpack(KEYS)
local token, progress, text, channel, id, lockMs, working = unpack(ARGV)
if redis.call('GET', lock) ~= token then return 'lost' end
redis.call('PEXPIRE', lock, lockMs)
if working == '1' then redis.call('HSET', hash, '${recordFields.working}', '1')
else redis.call('HDEL', hash, '${recordFields.working}') end
if redis.call('HEXISTS', hash, '${recordFields.cancelled}') == 1 then return 'cancelled' end
local floor = tonumber(redis.call('HGET', hash, '${recordFields.progressFloor}') or '0')
local state = cjson.decode(text)
if floor > state.progress then
  text = string.gsub(text, '"progress":%d+', '"progress":' .. floor, 1)
else
  floor = state.progress
end
if redis.call('HGET', hash, 'progress') ~= text then
  redis.call('HSET', hash, 'progress', text, '${recordFields.progressFloor}', floor)
  redis.call('PUBLISH', channel, id)
end
return 'held'
`);

export interface Holder {
  readonly jobId: string;
  /** Token of the job's lock. */
  readonly token: string;
  /** For so long the lock is ours from now on. */
  readonly lockMs: number;
  /** Whether the job is being worked on, so that the death of its worker counts against it. */
  readonly working: boolean;
}

/**
 * Writes the state of a running job; progress only ever goes up, also over several attempts. Renews the lock too: BullMQ stops
 * to do so when an earlier attempt at the same job, given up but not yet over, ends in the same process.
 */
export async function reportProgress(
  redis: Redis,
  { jobId, token, lockMs, working }: Holder,
  { progress, ...rest }: ExtractProgress,
): Promise<Hold> {
  const hash = jobKey('extract', jobId);
  // `progress` stands first, where the script replaces it without decoding and encoding the rest.
  const text = JSON.stringify({ progress, ...rest });
  return (await report.run(
    redis,
    [hash, `${hash}:lock`],
    [token, progress, text, CHANGE_CHANNEL, jobId, lockMs, working ? '1' : '0'],
  )) as Hold;
}

export type CancelOutcome =
  | 'missing'
  /** The job had ended before. */
  | 'finished'
  /** It was waiting: it is now held under the given token, to be failed by the caller. */
  | 'claimed'
  /** Its worker was told. */
  | 'told';

const cancel = new RedisScript(`
local hash, lock, prioritized, wait, delayed, active = unpack(KEYS)
local id, token, channel, changes, claimMs = unpack(ARGV)
if redis.call('EXISTS', hash) == 0 then return 'missing' end
if redis.call('HEXISTS', hash, 'finishedOn') == 1 then return 'finished' end
redis.call('HSET', hash, '${recordFields.cancelled}', '1')
redis.call('PUBLISH', changes, id)
if redis.call('ZREM', prioritized, id) == 1 or redis.call('LREM', wait, 1, id) == 1
  or redis.call('ZREM', delayed, id) == 1 then
  redis.call('LPUSH', active, id)
  redis.call('SET', lock, token, 'PX', claimMs)
  return 'claimed'
end
redis.call('PUBLISH', channel, id)
return 'told'
`);

/** How long a claimed job may stay unfailed; then it stalls, and the worker that gets it sees the flag. */
const CLAIM_MS = 5000;

/**
 * Marks the job as cancelled, whatever it is doing, and tells whoever runs it. The flag is what counts; the message
 * only makes it quick (a message alone is lost when the worker does not listen yet).
 */
export async function markCancelled(redis: Redis, jobId: string, token: string): Promise<CancelOutcome> {
  const hash = jobKey('extract', jobId);
  return (await cancel.run(
    redis,
    [
      hash,
      `${hash}:lock`,
      queueKey('extract', 'prioritized'),
      queueKey('extract', 'wait'),
      queueKey('extract', 'delayed'),
      queueKey('extract', 'active'),
    ],
    [jobId, token, CANCEL_CHANNEL, CHANGE_CHANNEL, CLAIM_MS],
  )) as CancelOutcome;
}
