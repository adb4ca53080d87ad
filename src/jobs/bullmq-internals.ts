/**
 * What we need of BullMQ that its public API does not offer (docs/decisions/0027-bullmq-by-its-public-api.md). Written for
 * {@link BULLMQ_VERSION}: nothing else in `src` names one of its keys, or a field of a job's hash, and no other version is served.
 */

import bullmq from 'bullmq/package.json' with { type: 'json' };
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { RedisScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import {
  ACCEPTED_CHANNEL,
  CANCEL_CHANNEL,
  CHANGE_CHANNEL,
  DEAD_WORKERS_KEY,
  type QueueName,
  queueNames,
  VIRTUAL_TIME_KEY,
  WORKER_BEATS_KEY,
} from './names.ts';
import type { ExtractPayload, ExtractProgress } from './payloads.ts';
import { apiKeyKey, PAUSED_FIELD } from './tenants/api-keys.ts';

export const BULLMQ_VERSION = '6.7.0';

/** @throws when another version of BullMQ is installed: its keys may be others, and jobs be lost */
export function checkBullmq(installed = bullmq.version): void {
  if (installed !== BULLMQ_VERSION) {
    throw new Error(
      `BullMQ ${installed} is installed, but the service is written for ${BULLMQ_VERSION}: install that one (npm ci, or npm install bullmq@${BULLMQ_VERSION})`,
    );
  }
}

const keyOf = (queue: QueueName, part: string): string => `${KEY_PREFIX}:${queueNames[queue]}:${part}`;
const lockOf = (jobId: string): string => keyOf('extract', `${jobId}:lock`);

/** Where a job's record is, for those who ask whether it is there, or hand it to {@link READ_RECORD}. */
export const recordKey = (queue: QueueName, jobId: string): string => keyOf(queue, jobId);

/** Fields of ours in an extraction's hash. */
const own = {
  cancelled: 'spCancelled',
  /** The highest progress written so far. */
  progressFloor: 'spProgress',
  /** Tokens of all attempts that had their turn, separated by commas. */
  attempts: 'spAttempts',
  /** Id of the worker process that works on the job (src/jobs/worker-registry.ts), left behind when it dies, or loses the job. */
  working: 'spWorking',
  /** Those that left it behind and have not been heard of since: `<id>@<Redis' TIME in ms>`, separated by commas. */
  leftBy: 'spLeftBy',
  erased: 'spErased',
  /** Its API knows that it is there, and answers that it is accepted. */
  confirmed: 'spConfirmed',
  /** Its API has answered that nothing was accepted: {@link REFUSED}, or {@link DROPPED} once a worker has acted on it. */
  refused: 'spRefused',
  voiceSend: 'spVoiceSend',
} as const;

export const REFUSED = '1';
const DROPPED = '2';

const NATURAL = z.coerce.number().int().nonnegative();

const ExtractionHash = z.object({
  data: z.string(),
  timestamp: NATURAL,
  progress: z.string().default('0'),
  processedOn: NATURAL.nullable().default(null),
  finishedOn: NATURAL.nullable().default(null),
  returnvalue: z.string().optional(),
  failedReason: z.string().optional(),
  [own.cancelled]: z.string().optional(),
  [own.attempts]: z.string().optional(),
  [own.erased]: z.string().optional(),
  [own.confirmed]: z.string().optional(),
  [own.voiceSend]: z.string().optional(),
});

export type StoredExtraction = NonNullable<ReturnType<typeof readExtraction>>;

/** What an extraction's hash says: texts are JSON, times ms since the epoch. Undefined when it is empty. Throws when this version cannot read it. */
export function readExtraction(hash: Readonly<Record<string, string>>) {
  if (hash.data === undefined) return undefined;
  const raw = ExtractionHash.parse(hash);
  return {
    data: raw.data,
    createdAtMs: raw.timestamp,
    startedAtMs: raw.processedOn,
    finishedAtMs: raw.finishedOn,
    /** 0 before the first report. */
    progress: raw.progress,
    result: raw.returnvalue,
    /** Survives a later success. */
    failure: raw.failedReason,
    /** Before it ended. */
    isCancelled: raw[own.cancelled] !== undefined,
    /** Of all attempts that may have left files: what the janitor finds those by. */
    attemptTokens: raw[own.attempts]?.split(',') ?? [],
    /** The caller had the files of a finished job erased. */
    isErased: raw[own.erased] !== undefined,
    isConfirmed: raw[own.confirmed] !== undefined,
    /** The latest sending as a voice message, when it is not the one of the submission. */
    voiceSendId: raw[own.voiceSend],
  };
}

/** One round trip; empty when there is no such job. */
export function fetchExtraction(redis: Redis, jobId: string): Promise<Record<string, string>> {
  return redis.hgetall(recordKey('extract', jobId));
}

// Where a failover lost the job, a field of ours alone would pass for it: BullMQ adds no id that has a hash.
const note = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 'absent' end
return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) == 1 and 'new' or 'known'
`);

/** Writes a field of ours in the hash of a job that is there. `known`: it had the field. */
async function noteField(redis: Redis, key: string, field: string, value: string) {
  return (await note.run(redis, [key], [field, value])) as 'new' | 'known' | 'absent';
}

export async function noteErased(redis: Redis, jobId: string): Promise<void> {
  await noteField(redis, recordKey('extract', jobId), own.erased, '1');
}

export async function isErased(redis: Redis, jobId: string): Promise<boolean> {
  return (await redis.hexists(recordKey('extract', jobId), own.erased)) === 1;
}

export async function noteVoiceSend(redis: Redis, jobId: string, sendId: string): Promise<void> {
  await noteField(redis, recordKey('extract', jobId), own.voiceSend, sendId);
}

/** Field of ours in a voice message's hash, set while a request to the gateway is under way. */
const SENDING = 'spSending';

const FollowUpHash = z.object({
  atm: NATURAL.default(0),
  finishedOn: NATURAL.optional(),
  returnvalue: z.string().optional(),
  [SENDING]: z.string().optional(),
});

/** What the hash says of something that follows a job; one round trip. */
export async function fetchFollowUp(redis: Redis, queue: 'voice' | 'transcript' | 'destination', id: string) {
  const hash = FollowUpHash.parse(await redis.hgetall(recordKey(queue, id)));
  return {
    /** Tries that have ended. */
    attempts: hash.atm,
    hasEnded: hash.finishedOn !== undefined,
    /** JSON; undefined before it ended well. */
    result: hash.returnvalue,
    isSending: hash[SENDING] !== undefined,
  };
}

/** Answers whether it was noted already; `absent`: Redis has lost the voice message. */
export function noteSending(redis: Redis, sendId: string): Promise<'new' | 'known' | 'absent'> {
  return noteField(redis, recordKey('voice', sendId), SENDING, '1');
}

export async function clearSending(redis: Redis, sendId: string): Promise<void> {
  await redis.hdel(recordKey('voice', sendId), SENDING);
}

const fields = Object.keys(ExtractionHash.shape);

/** Lua: `readRecord(key)` for a script that reads a job along with something else; see {@link hashOf}. */
export const READ_RECORD = `
local function readRecord(key) return redis.call('HMGET', key, '${fields.join("', '")}') end
`;

/** What `readRecord` answered, as the hash. */
export function hashOf(values: readonly (string | null)[]): Record<string, string> {
  const hash: Record<string, string> = {};
  for (const [index, value] of values.entries()) {
    const field = fields[index];
    if (field !== undefined && value !== null) hash[field] = value;
  }
  return hash;
}

/** Lua: `timesOf(id)`, when an extraction was accepted and when it ended, ms; false for what has not happened. */
export const TIMES_OF = `
local function timesOf(id)
  local created, finished = unpack(redis.call('HMGET', '${recordKey('extract', '')}' .. id, 'timestamp', 'finishedOn'))
  return tonumber(created or nil) or false, tonumber(finished or nil) or false
end
`;

/** BullMQ takes no larger priority. */
export const LARGEST_PRIORITY = 2_097_151;

/** The first keys of a script with {@link QUEUE_PLACES}. */
export const QUEUE_PLACES_KEYS = ['prioritized', 'wait', 'active', 'delayed'].map((part) =>
  keyOf('extract', part),
);

/**
 * Lua: `lengths()`, how many extractions wait with a priority, without one, and run; `priorityOf(id)`, 0 for one without; `before(priority, id)`, how many
 * wait and how many run in front of that one, which is not there yet when `id` is nil; `shiftPriorities(by)` moves all that wait, run or may come back to the front by so much, and none
 * before 1. BullMQ's score of a job with a priority is priority * 2^32 + a counter.
 */
export const QUEUE_PLACES = `
local UNIT = 4294967296
local function lengths()
  return redis.call('ZCARD', KEYS[1]), redis.call('LLEN', KEYS[2]), redis.call('LLEN', KEYS[3])
end
local function priorityOf(id)
  return tonumber(redis.call('HGET', '${recordKey('extract', '')}' .. id, 'priority') or '0')
end
local function before(priority, id)
  local waiting = 0
  if not id then
    waiting = redis.call('LLEN', KEYS[2]) + redis.call('ZCOUNT', KEYS[1], '-inf', string.format('(%.0f', (priority + 1) * UNIT))
  else
    local rank = redis.call('ZRANK', KEYS[1], id)
    if rank then waiting = redis.call('LLEN', KEYS[2]) + rank end
  end
  local running = 0
  for _, other in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    if other ~= id and priorityOf(other) <= priority then running = running + 1 end
  end
  return waiting, running
end
local function shiftPriorities(by)
  local function shift(id)
    local priority = priorityOf(id)
    if priority > 0 then redis.call('HSET', '${recordKey('extract', '')}' .. id, 'priority', math.max(1, priority - by)) end
  end
  local scored = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  for i = 1, #scored, 2 do
    local score = tonumber(scored[i + 1])
    redis.call('ZADD', KEYS[1], math.max(UNIT + score % UNIT, score - by * UNIT), scored[i])
    shift(scored[i])
  end
  for _, id in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do shift(id) end
  for _, id in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do shift(id) end
  for _, id in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do shift(id) end
end
`;

const confirm = new RedisScript(`
local all = 1
for index, hash in ipairs(KEYS) do
  if redis.call('EXISTS', hash) == 0 or redis.call('HGET', hash, '${own.refused}') == '${DROPPED}' then
    all = 0
  else
    redis.call('HDEL', hash, '${own.refused}')
    redis.call('HSET', hash, '${own.confirmed}', '1')
    redis.call('PUBLISH', ARGV[3], ARGV[3 + index])
  end
end
redis.call('PUBLISH', ARGV[1], ARGV[2])
return all
`);

/** From now on those of the jobs that are there may be started. False when one of them is not there any more. */
export async function confirmJobs(redis: Redis, tenant: string, jobIds: readonly string[]): Promise<boolean> {
  const keys = jobIds.map((jobId) => recordKey('extract', jobId));
  const args = [ACCEPTED_CHANNEL, `${tenant} ${jobIds[0]}`, CHANGE_CHANNEL, ...jobIds];
  return (await confirm.run(redis, keys, args)) === 1;
}

// No caller can write `"tenant":"` into the data; see firstWaiting.
const owner = new RedisScript(`
return string.match(redis.call('HGET', KEYS[1], 'data') or '', '"tenant":"([^"]+)"')
`);

/** The tenant of an extraction, undefined where there is no such job. */
export async function ownerOf(redis: Redis, jobId: string): Promise<string | undefined> {
  const tenant = await owner.run(redis, [recordKey('extract', jobId)], []);
  return typeof tenant === 'string' ? tenant : undefined;
}

/** Lua: `refuse(id, how)`, which settles that a job is not started unless it is confirmed already; answers what it is: `confirmed`, `refused`, or `absent`. */
export const REFUSE = `
local function refuse(id, how)
  local hash = '${recordKey('extract', '')}' .. id
  if redis.call('HEXISTS', hash, '${own.confirmed}') == 1 then return 'confirmed' end
  if redis.call('EXISTS', hash) == 0 then return 'absent' end
  redis.call('HSET', hash, '${own.refused}', how)
  return 'refused'
end
`;

const drop = new RedisScript(`
${REFUSE}
return refuse(ARGV[1], '${DROPPED}') == 'confirmed' and 0 or 1
`);

/** Settles that the job is never started. False when it was confirmed after all. */
export async function dropUnconfirmed(redis: Redis, jobId: string): Promise<boolean> {
  return (await drop.run(redis, [recordKey('extract', jobId)], [jobId])) === 1;
}

/** `lost`: the job was given to another worker, so the lock is not ours any more. */
export type AttemptState = 'held' | 'cancelled' | 'lost';
/** `unconfirmed`: its API has not said yet that it is accepted; `refused`: it was not, and never will be; `paused`: its key is. */
type StartState = AttemptState | 'unconfirmed' | 'refused' | 'paused';

// A process that was heard of after it had left the job did not die of it; one that nobody knows any more has ended in order.
const start = new RedisScript(`
local hash, lock, beats, dead, key = unpack(KEYS)
local token = ARGV[1]
if redis.call('GET', lock) ~= token then return {'lost', 0, 0} end
if redis.call('HEXISTS', hash, '${own.confirmed}') == 0 then
  if redis.call('HEXISTS', hash, '${own.refused}') == 0 then return {'unconfirmed', 0, 0} end
  redis.call('HSET', hash, '${own.refused}', '${DROPPED}')
  return {'refused', 0, 0}
end
local isCancelled = redis.call('HEXISTS', hash, '${own.cancelled}') == 1
if not isCancelled and redis.call('HEXISTS', key, '${PAUSED_FIELD}') == 1 then return {'paused', 0, 0} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local leftBy, working = unpack(redis.call('HMGET', hash, '${own.leftBy}', '${own.working}'))
local lost, unsure, left = 0, 0, {}
local function see(id, since)
  local heard = redis.call('ZSCORE', beats, id)
  if redis.call('ZSCORE', dead, id) then lost = lost + 1
  elseif heard and tonumber(heard) <= since then unsure = unsure + 1
  else return end
  left[#left + 1] = string.format('%s@%.0f', id, since)
end
for id, since in string.gmatch(leftBy or '', '([^,@]+)@(%d+)') do
  if id ~= working then see(id, tonumber(since)) end
end
if working then see(working, now) end
if #left > 0 then redis.call('HSET', hash, '${own.leftBy}', table.concat(left, ','))
else redis.call('HDEL', hash, '${own.leftBy}') end
redis.call('HDEL', hash, '${own.working}')
return {isCancelled and 'cancelled' or 'held', lost, unsure}
`);

/**
 * To be called once when a worker takes the job up: looks after the attempts before it that left the job in the middle of their work.
 * `lostStarts`: how many by the death of their process. `unsureStarts`: how many by one that is silent, and may be dead.
 */
export async function startAttempt(
  redis: Redis,
  { jobId, token, tenant }: Pick<Holder, 'jobId' | 'token'> & Pick<ExtractPayload, 'tenant'>,
): Promise<{ readonly state: StartState; readonly lostStarts: number; readonly unsureStarts: number }> {
  const keys = [
    recordKey('extract', jobId),
    lockOf(jobId),
    WORKER_BEATS_KEY,
    DEAD_WORKERS_KEY,
    apiKeyKey(tenant),
  ];
  const answer = (await start.run(redis, keys, [token])) as [StartState, number, number];
  return { state: answer[0], lostStarts: answer[1], unsureStarts: answer[2] };
}

const serve = new RedisScript(`
local hash, time = unpack(KEYS)
local attempt = ARGV[1]
if attempt ~= '' and redis.call('EXISTS', hash) == 1 then
  local attempts = redis.call('HGET', hash, '${own.attempts}')
  redis.call('HSET', hash, '${own.attempts}', attempts and attempts .. ',' .. attempt or attempt)
end
local priority = tonumber(redis.call('HGET', hash, 'priority') or '0')
if priority > tonumber(redis.call('GET', time) or '0') then redis.call('SET', time, priority) end
`);

/**
 * Moves the virtual time of the queue on to the job, which has its turn now, or has ended without one (docs/decisions/0004-fairness.md).
 * @param attemptToken of an attempt that may leave files behind from now on
 */
export async function noteServed(redis: Redis, jobId: string, attemptToken = ''): Promise<void> {
  await serve.run(redis, [recordKey('extract', jobId), VIRTUAL_TIME_KEY], [attemptToken]);
}

const report = new RedisScript(`
local hash, lock = unpack(KEYS)
local token, text, channel, id, lockMs, working = unpack(ARGV)
if redis.call('GET', lock) ~= token then return 'lost' end
redis.call('PEXPIRE', lock, lockMs)
if working ~= '' then redis.call('HSET', hash, '${own.working}', working)
else redis.call('HDEL', hash, '${own.working}') end
if redis.call('HEXISTS', hash, '${own.cancelled}') == 1 then return 'cancelled' end
local floor = tonumber(redis.call('HGET', hash, '${own.progressFloor}') or '0')
local progress = cjson.decode(text).progress
if floor > progress then
  text = string.gsub(text, '"progress":%d+', '"progress":' .. floor, 1)
else
  floor = progress
end
if redis.call('HGET', hash, 'progress') ~= text then
  redis.call('HSET', hash, 'progress', text, '${own.progressFloor}', floor)
  redis.call('PUBLISH', channel, id)
end
return 'held'
`);

interface Holder {
  readonly jobId: string;
  /** Token of the job's lock. */
  readonly token: string;
  /** For so long the lock is ours from now on. */
  readonly lockMs: number;
  /** Id of the process that works on the job, whose death would count against it; empty while none does. */
  readonly working: string;
}

/**
 * Writes the state of a running job; progress only ever goes up, also over several attempts. Renews the lock too: BullMQ stops
 * to do so when an earlier attempt at the same job, given up but not yet over, ends in the same process.
 */
export async function reportProgress(
  redis: Redis,
  { jobId, token, lockMs, working }: Holder,
  { progress, ...rest }: ExtractProgress,
): Promise<AttemptState> {
  // `progress` stands first, where the script replaces it without decoding and encoding the rest.
  const text = JSON.stringify({ progress, ...rest });
  const keys = [recordKey('extract', jobId), lockOf(jobId)];
  return (await report.run(redis, keys, [
    token,
    text,
    CHANGE_CHANNEL,
    jobId,
    lockMs,
    working,
  ])) as AttemptState;
}

/** `claimed`: it was waiting, and is now held under the given token, to be failed by the caller. `told`: its worker was. */
export type CancelOutcome = 'missing' | 'finished' | 'claimed' | 'told';

/** How long a claimed job may stay unfailed; then it stalls, and the worker that gets it sees the flag. */
const CLAIM_MS = 5000;

const cancel = new RedisScript(`
local prioritized, wait, active, delayed, hash, lock = unpack(KEYS)
local id, token, channel, changes = unpack(ARGV)
if redis.call('EXISTS', hash) == 0 then return 'missing' end
if redis.call('HEXISTS', hash, 'finishedOn') == 1 then return 'finished' end
redis.call('HSET', hash, '${own.cancelled}', '1')
redis.call('PUBLISH', changes, id)
if redis.call('ZREM', prioritized, id) == 1 or redis.call('LREM', wait, 1, id) == 1
  or redis.call('ZREM', delayed, id) == 1 then
  redis.call('LPUSH', active, id)
  redis.call('SET', lock, token, 'PX', ${CLAIM_MS})
  return 'claimed'
end
redis.call('PUBLISH', channel, id)
return 'told'
`);

/**
 * Marks the job as cancelled, whatever it is doing, and tells whoever runs it. The flag is what counts; the message
 * only makes it quick (a message alone is lost when the worker does not listen yet).
 */
export async function markCancelled(redis: Redis, jobId: string, token: string): Promise<CancelOutcome> {
  const keys = [...QUEUE_PLACES_KEYS, recordKey('extract', jobId), lockOf(jobId)];
  return (await cancel.run(redis, keys, [jobId, token, CANCEL_CHANNEL, CHANGE_CHANNEL])) as CancelOutcome;
}

const locks = new RedisScript(`
local found = {}
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local token = redis.call('GET', ARGV[1] .. id .. ':lock')
  if token then
    found[#found + 1] = id
    found[#found + 1] = token
  end
end
return found
`);

/** Jobs of the queue that somebody holds, and the tokens of their locks: those of one of BullMQ's workers begin with its id and a colon. */
export async function heldJobs(
  redis: Redis,
  queue: QueueName,
): Promise<{ readonly jobId: string; readonly token: string }[]> {
  const flat = (await locks.run(redis, [keyOf(queue, 'active')], [keyOf(queue, '')])) as string[];
  return flat.flatMap((jobId, index) => (index % 2 === 0 ? [{ jobId, token: flat[index + 1] ?? '' }] : []));
}

export interface WaitingJob {
  readonly jobId: string;
  readonly tenant: string;
  /** Ms since the epoch. */
  readonly submittedAtMs: number;
  /** It was brought forward already, or comes back from a worker that died. */
  readonly isInFront: boolean;
}

/** How far into the queue a job is looked for: by default as many as the unfinished jobs of five keys. Each takes 5 µs. */
const LOOKED_FOR_AMONG = 500;

const WAITING_KEYS = [keyOf('extract', 'prioritized'), keyOf('extract', 'wait')];

// No caller can write `"tenant":"` into the data: within a text of JSON each quotation mark has a backslash before it.
const firstOfOthers = new RedisScript(`
local prefix, served, known, first = ARGV[1], {}, {}, nil
for i = 3, #ARGV do
  known[ARGV[i]] = true
  served[ARGV[i]] = i < 3 + tonumber(ARGV[2])
end
local function see(id, isInFront)
  local data, submitted = unpack(redis.call('HMGET', prefix .. id, 'data', 'timestamp'))
  local tenant = string.match(data or '', '"tenant":"([^"]+)"')
  if not tenant or served[tenant] or redis.call('HEXISTS', '${apiKeyKey('')}' .. tenant, '${PAUSED_FIELD}') == 1 then return end
  if not known[tenant] then return {id, tenant, submitted, isInFront} end
  first = first or {id, tenant, submitted, isInFront}
end
for key, range in ipairs({redis.call('ZRANGE', KEYS[1], 0, ${LOOKED_FOR_AMONG - 1}), redis.call('LRANGE', KEYS[2], -${LOOKED_FOR_AMONG}, -1)}) do
  for _, id in ipairs(range) do
    local newcomer = see(id, key - 1)
    if newcomer then return newcomer end
  end
end
return first
`);

/** The first job of the queue that is of none of these keys, or else the first of a key that is not `served`; none of a paused key. */
export async function firstWaiting(
  redis: Redis,
  served: readonly string[],
  others: readonly string[],
): Promise<WaitingJob | undefined> {
  const args = [keyOf('extract', ''), served.length, ...served, ...others];
  const found = await firstOfOthers.run(redis, WAITING_KEYS, args);
  if (found === null) return undefined;
  const [jobId, tenant, submittedAtMs, isInFront] = found as [string, string, string, 0 | 1];
  return { jobId, tenant, submittedAtMs: Number(submittedAtMs), isInFront: isInFront === 1 };
}

// BullMQ takes the last of its plain list before any with a priority, which the job keeps.
const forward = new RedisScript(`
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('RPUSH', KEYS[2], ARGV[1])
`);

/** The job is the next that a worker takes up. False when it does not wait any more, or somebody else has brought it forward. */
export async function bringForward(redis: Redis, jobId: string): Promise<boolean> {
  return (await forward.run(redis, WAITING_KEYS, [jobId])) !== 0;
}

/** Wakes an idle worker: BullMQ does not for a job with a priority that `moveToWait` brings back, and they look every 5 s only. */
export async function wakeWorker(redis: Redis): Promise<void> {
  await redis.zadd(keyOf('extract', 'marker'), 0, '0');
}

export interface Ended {
  readonly jobId: string;
  readonly endedAtMs: number;
}

/** Ended extractions, by when they ended. `from` as Redis writes a bound: `-inf`, `5`, or `(5` for what is later. */
export async function endedBetween(
  redis: Redis,
  outcome: 'completed' | 'failed',
  { from, untilMs, most }: { readonly from: string; readonly untilMs: number; readonly most: number },
): Promise<Ended[]> {
  const set = keyOf('extract', outcome);
  const flat = await redis.zrangebyscore(set, from, untilMs, 'WITHSCORES', 'LIMIT', 0, most);
  return flat.flatMap((jobId, index) =>
    index % 2 === 0 ? [{ jobId, endedAtMs: Number(flat[index + 1]) }] : [],
  );
}

/**
 * How many jobs at the head of a queue are looked at for the oldest. Jobs of one flow stand in the order they came, and the first of each flow stands near the
 * head (docs/decisions/0004-fairness.md): with more flows than this the oldest may be missed, and one nearly as old is told.
 */
const LOOKED_AT = 200;

// An announcement that was tried before waits since its next try was due, which no field tells once it is due: of those only the delayed ones
// that nobody has taken up count. BullMQ's score of a delayed job is its time * 0x1000.
const oldest = new RedisScript(`
local prioritized, wait, delayed = unpack(KEYS)
local now, prefix, isExtract = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local oldest = now
local function see(ids)
  for _, id in ipairs(ids) do
    local created, started = unpack(redis.call('HMGET', prefix .. id, 'timestamp', 'processedOn'))
    if created and (isExtract or not started) then oldest = math.min(oldest, tonumber(created)) end
  end
end
see(redis.call('ZRANGE', prioritized, 0, ${LOOKED_AT - 1}))
see(redis.call('LRANGE', wait, -${LOOKED_AT}, -1))
local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
if due then oldest = math.min(oldest, tonumber(due) / 4096) end
return math.max(0, math.floor(now - oldest))
`);

/** For how long the job has waited that has waited longest, ms; 0 when none waits. One script, whatever the length of the queue. */
export async function oldestWaitMs(redis: Redis, queue: QueueName): Promise<number> {
  const keys = ['prioritized', 'wait', 'delayed'].map((part) => keyOf(queue, part));
  const args = [redisNow(), keyOf(queue, ''), queue === 'extract' ? '1' : '0'];
  return (await oldest.run(redis, keys, args)) as number;
}
