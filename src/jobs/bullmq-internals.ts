/**
 * BullMQ internals that its public API lacks (docs/decisions/0027-bullmq-by-its-public-api.md).
 * Written for {@link BULLMQ_VERSION} only. In `src` nothing else, except its scripts in lua/bullmq,
 * names BullMQ's keys or the fields of a job's hash.
 */

import type { Job, Worker } from 'bullmq';
import bullmq from 'bullmq/package.json' with { type: 'json' };
import type { JobStatus } from 'soundpost-contract/job';
import type { KeptAnswer } from 'soundpost-kit/http/idempotency';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { ofItsType, readHash, unlessUnreadable } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import {
  ACCEPTED_CHANNEL,
  CANCEL_CHANNEL,
  CHANGE_CHANNEL,
  completionId,
  DEAD_WORKERS_KEY,
  type QueueName,
  queueNames,
  VIRTUAL_TIME_KEY,
  WORKER_BEATS_KEY,
} from './names.ts';
import type { ExtractPayload, ExtractProgress } from './payloads.ts';
import { apiKeyKey } from './tenants/api-keys.ts';

export const BULLMQ_VERSION = '6.7.0';

/** @throws for another version of BullMQ: with other keys, jobs could be lost */
export function checkBullmq(installed = bullmq.version): void {
  if (installed !== BULLMQ_VERSION) {
    throw new Error(
      `BullMQ ${installed} is installed, but the service is written for ${BULLMQ_VERSION}: install that one (npm ci, or npm install bullmq@${BULLMQ_VERSION})`,
    );
  }
}

const keyOf = (queue: QueueName, part: string): string => `${KEY_PREFIX}:${queueNames[queue]}:${part}`;
const lockOf = (jobId: string): string => keyOf('extract', `${jobId}:lock`);

/** The key of a job's record, to check for it or to pass it to lua/bullmq/read-record.lua. */
export const recordKey = (queue: QueueName, jobId: string): string => keyOf(queue, jobId);

/** Our fields in an extraction's hash; lua/bullmq/names.lua has those only scripts use. */
export const own = {
  cancelled: 'spCancelled',
  /** Comma-separated tokens of all attempts that got an encoder. */
  attempts: 'spAttempts',
  erased: 'spErased',
  /** The API saw the job added, and answers that it is accepted. */
  confirmed: 'spConfirmed',
  /** Whose it is, also where the data cannot be read. */
  tenant: 'spTenant',
  /** What a list searches, as JSON: {@link ConfirmedJob}. */
  names: 'spNames',
  voiceSend: 'spVoiceSend',
} as const;

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

/** A damaged hash is read without its data, so that no record comes of it. */
const DamagedHash = ExtractionHash.extend({
  data: z
    .unknown()
    .optional()
    .transform(() => ''),
  timestamp: NATURAL.catch(0),
  processedOn: NATURAL.nullable().catch(null),
  finishedOn: NATURAL.nullable().catch(null),
});

/**
 * An extraction's hash; texts are JSON, times ms. Undefined if empty; `data` is empty if damaged.
 */
export function readExtraction(hash: Readonly<Record<string, string>>) {
  if (!RECORD_FIELDS.some((field) => hash[field] !== undefined)) return undefined;
  const raw = ExtractionHash.safeParse(hash).data ?? DamagedHash.parse(hash);
  return {
    data: raw.data,
    createdAtMs: raw.timestamp,
    ...stateIn(raw),
    /** Kept after a later success. */
    failure: raw.failedReason,
    /** All attempts that may have left files, for the janitor. */
    attemptTokens: raw[own.attempts]?.split(',') ?? [],
    /** The caller erased the job's files. */
    isErased: raw[own.erased] !== undefined,
    /** The latest voice message, if not the submission's own. */
    voiceSendId: raw[own.voiceSend],
  };
}

function stateIn(raw: Omit<z.infer<typeof ExtractionHash>, 'data' | 'timestamp'>) {
  return {
    startedAtMs: raw.processedOn,
    finishedAtMs: raw.finishedOn,
    /** 0 before the first report. */
    progress: raw.progress,
    result: raw.returnvalue,
    /** Cancelled before it ended. */
    isCancelled: raw[own.cancelled] !== undefined,
    isConfirmed: raw[own.confirmed] !== undefined,
  };
}

/** What is read of a key that holds no hash; the same in lua/bullmq/read-record.lua. */
const NO_HASH = { data: '', [own.confirmed]: '1' };

/** One round trip; empty if there is no such job. */
export function fetchExtraction(redis: Redis, jobId: string): Promise<Record<string, string>> {
  return unlessUnreadable<Record<string, string>, Record<string, string>>(
    () => ofItsType(redis.hgetall(recordKey('extract', jobId))),
    () => NO_HASH,
  );
}

const note = loadScript(new URL('./lua/bullmq/field-note.lua', import.meta.url));

/** Sets our field in an existing job's hash. `known`: it was set before. */
async function noteField(redis: Redis, key: string, field: string, value: string) {
  return (await note.run(redis, [key], [field, value])) as 'new' | 'known' | 'absent';
}

export async function noteErased(redis: Redis, jobId: string): Promise<void> {
  await noteField(redis, recordKey('extract', jobId), own.erased, '1');
}

export async function isErased(redis: Redis, jobId: string): Promise<boolean> {
  return (await redis.hexists(recordKey('extract', jobId), own.erased)) === 1;
}

const confirmSend = loadScript(new URL('./lua/bullmq/voice-confirm.lua', import.meta.url));

interface VoiceConfirmation {
  readonly jobId: string;
  readonly sendId: string;
  /** Of its first note. */
  readonly id: string;
  /** Key of the job's set of follow-ups, and how long it is kept. */
  readonly deliveries: string;
  readonly keepSeconds: number;
  readonly kept: KeptAnswer | undefined;
}

/** Lets a voice message that was asked for be sent; the job then shows it. False if it is gone. */
export async function confirmVoice(
  redis: Redis,
  { jobId, sendId, id, deliveries, keepSeconds, kept }: VoiceConfirmation,
): Promise<boolean> {
  const records = [recordKey('voice', id), recordKey('extract', jobId), deliveries];
  const keys = [...PROMOTION_KEYS('voice'), ...records, ...(kept ? [kept.record] : [])];
  const answer = [kept?.fingerprint ?? '', kept?.seed ?? '', kept?.answer ?? ''];
  return (await confirmSend.run(redis, keys, [id, sendId, keepSeconds, ...answer])) === 1;
}

const confirmedOrDrop = loadScript(new URL('./lua/bullmq/confirmed-or-drop.lua', import.meta.url));

/** Whether the voice message was confirmed; if not, it never will be. */
export async function isVoiceConfirmed(redis: Redis, id: string): Promise<boolean> {
  return (await confirmedOrDrop.run(redis, [recordKey('voice', id)], [])) === 1;
}

/** Our field in a voice message's hash, set while a request to the gateway is running. */
const SENDING = 'spSending';
/** Our field beside it: the gateway will never send under this key, and its message may be sent. */
const MAY_BE_SENT = 'spMayBeSent';
/** Our field in the hash of a delivery to a destination: its latest replay, as JSON. */
const REPLAY = 'spReplay';

const FollowUpHash = z.object({
  atm: NATURAL.default(0),
  finishedOn: NATURAL.optional(),
  returnvalue: z.string().optional(),
  failedReason: z.string().optional(),
  [SENDING]: z.string().optional(),
  [REPLAY]: z.string().optional(),
});

/** The state of a follow-up; one round trip. */
export async function fetchFollowUp(redis: Redis, queue: 'voice' | 'transcript' | 'destination', id: string) {
  const found = await unlessUnreadable(
    () => readHash(redis, recordKey(queue, id), FollowUpHash),
    (): z.infer<typeof FollowUpHash> => ({ atm: 0, finishedOn: 0 }),
  );
  const hash = found ?? FollowUpHash.parse({});
  return {
    isThere: found !== undefined,
    /** Completed attempts. */
    attempts: hash.atm,
    hasEnded: hash.finishedOn !== undefined,
    /** JSON; undefined before success. */
    result: hash.returnvalue,
    /** Why the last attempt failed; also kept after a later success. */
    failure: hash.failedReason,
    isSending: hash[SENDING] !== undefined,
    /** JSON; undefined unless it was asked for again. */
    replay: hash[REPLAY],
  };
}

/** A field of its own: a worker that has the delivery writes back the payload that it knows. */
export async function notePutReplay(redis: Redis, putId: string, replay: string): Promise<void> {
  await noteField(redis, recordKey('destination', putId), REPLAY, replay);
}

/**
 * Whether a follow-up is missing although all that follows the job's end was added: the worker that
 * added it knew none of its kind, or Redis has lost it. Nobody will begin it.
 */
export async function isNeverBegun(
  redis: Redis,
  queue: 'transcript' | 'destination',
  id: string,
  jobId: string,
): Promise<boolean> {
  const completion = recordKey('completion', completionId(jobId));
  const hasCompleted = await unlessUnreadable(
    () => ofItsType(redis.hexists(completion, 'finishedOn')),
    () => 0,
  );
  return hasCompleted === 1 && (await redis.exists(recordKey(queue, id))) === 0;
}

/** `known`: already marked; `absent`: Redis has lost the voice message. */
export function noteSending(redis: Redis, sendId: string): Promise<'new' | 'known' | 'absent'> {
  return noteField(redis, recordKey('voice', sendId), SENDING, '1');
}

export async function noteMayBeSent(redis: Redis, sendId: string): Promise<void> {
  await noteField(redis, recordKey('voice', sendId), MAY_BE_SENT, '1');
}

/**
 * The gateway rejected the message, or it is requested again: an attempt sends no duplicate.
 * @returns whether the gateway will send nothing under the same key
 */
export async function clearSending(redis: Redis, sendId: string): Promise<boolean> {
  const key = recordKey('voice', sendId);
  const [, mayBeSent] = (await redis.multi().hdel(key, SENDING).hdel(key, MAY_BE_SENT).exec()) ?? [];
  return mayBeSent?.[1] === 1;
}

/** Our field in the hash of any queue's job: when a worker that could not read it first left it. */
const LEFT_AT = 'spLeftAt';

/** @returns when the job was first left to others, ms; now, unless it was before */
export async function noteLeft(
  redis: Redis,
  queue: QueueName,
  jobId: string,
  nowMs: number,
): Promise<number> {
  const key = recordKey(queue, jobId);
  const isFirst = (await redis.hsetnx(key, LEFT_AT, nowMs)) === 1;
  return isFirst ? nowMs : Number(await redis.hget(key, LEFT_AT));
}

const GlanceHash = ExtractionHash.omit({ data: true, timestamp: true }).extend({
  [own.names]: z.string().default('[]'),
});
const DamagedGlance = GlanceHash.extend(DamagedHash.pick({ processedOn: true, finishedOn: true }).shape);
const GLANCE_FIELDS = Object.keys(GlanceHash.shape);

/** What a list filters by: without the request, which can be as large as a body may be. */
export async function fetchGlance(redis: Redis, jobId: string) {
  const values = await unlessUnreadable(
    () => ofItsType(redis.hmget(recordKey('extract', jobId), ...GLANCE_FIELDS)),
    () => undefined,
  );
  const fields = GLANCE_FIELDS.map((field, index) => [field, values?.[index] ?? undefined]);
  const hash = values === undefined ? NO_HASH : Object.fromEntries(fields);
  const raw = GlanceHash.safeParse(hash).data ?? DamagedGlance.parse(hash);
  return { ...stateIn(raw), names: raw[own.names] };
}

/** The fields that `readRecord` in lua/bullmq/read-record.lua reads. */
export const RECORD_FIELDS = Object.keys(ExtractionHash.shape);

/** Turns the answer of `readRecord` back into a hash. */
export function hashOf(values: readonly (string | null)[]): Record<string, string> {
  const hash: Record<string, string> = {};
  for (const [index, value] of values.entries()) {
    const field = RECORD_FIELDS[index];
    if (field !== undefined && value !== null) hash[field] = value;
  }
  return hash;
}

/** The first keys of a script that includes lua/bullmq/queue-places.lua. */
export const QUEUE_PLACES_KEYS = ['prioritized', 'wait', 'active', 'delayed'].map((part) =>
  keyOf('extract', part),
);

const confirm = loadScript(new URL('./lua/bullmq/submission-confirm.lua', import.meta.url));

interface ConfirmedJob {
  readonly jobId: string;
  /** By which a list finds it, beside those of its files. */
  readonly names: readonly string[];
}

/** `lists` are the tenant's sets of unfinished jobs and of all. */
interface Confirmation {
  readonly tenant: string;
  readonly lists: readonly [unfinished: string, all: string];
  readonly jobs: readonly ConfirmedJob[];
  /** Of the submission, if it has an Idempotency-Key. */
  readonly kept?: KeptAnswer | undefined;
}

/** Lets existing jobs of a submission start. False if one of them is gone. */
export async function confirmJobs(
  redis: Redis,
  { tenant, lists, jobs, kept }: Confirmation,
): Promise<boolean> {
  const keys = [...PROMOTION_KEYS('extract'), ...lists, ...(kept ? [kept.record] : [])];
  const named = jobs.flatMap(({ jobId, names }) => [jobId, JSON.stringify(names)]);
  const answer = [kept?.fingerprint ?? '', kept?.seed ?? '', kept?.answer ?? ''];
  const args = [ACCEPTED_CHANNEL, tenant, CHANGE_CHANNEL, ...answer, ...named];
  return (await confirm.run(redis, keys, args)) === 1;
}

/** The first keys of a script that includes lua/bullmq/promote.lua. */
const PROMOTION_KEYS = (queue: QueueName): string[] =>
  ['delayed', 'prioritized', 'wait', 'pc', 'marker'].map((part) => keyOf(queue, part));

const owner = loadScript(new URL('./lua/bullmq/owner-read.lua', import.meta.url));

/** The tenant of an extraction, undefined if there is no such job. */
export async function ownerOf(redis: Redis, jobId: string): Promise<string | undefined> {
  const tenant = await owner.run(redis, [recordKey('extract', jobId)], []);
  return typeof tenant === 'string' ? tenant : undefined;
}

/** `lost`: another worker has the job and its lock. */
export type AttemptState = 'held' | 'cancelled' | 'lost';
/** `unconfirmed`: never accepted; `paused`: its key is paused. */
type StartState = AttemptState | 'unconfirmed' | 'paused';

const start = loadScript(new URL('./lua/bullmq/attempt-start.lua', import.meta.url));

/**
 * Call once when a worker takes up the job: checks attempts that left it unfinished. `lostStarts`:
 * attempts whose process died. `unsureStarts`: attempts whose silent process may be dead.
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

const serve = loadScript(new URL('./lua/bullmq/served-note.lua', import.meta.url));

/**
 * Advances virtual time to a job that got an encoder or ended (docs/decisions/0004-fairness.md).
 * @param attemptToken of an attempt that can leave files from now on
 */
export async function noteServed(redis: Redis, jobId: string, attemptToken = ''): Promise<void> {
  await serve.run(redis, [recordKey('extract', jobId), VIRTUAL_TIME_KEY], [attemptToken]);
}

const report = loadScript(new URL('./lua/bullmq/progress-report.lua', import.meta.url));

interface Holder {
  readonly jobId: string;
  /** Token of the job's lock. */
  readonly token: string;
  /** The lock is renewed for this long. */
  readonly lockMs: number;
  /** The process whose death would count against the job; empty while none works on it. */
  readonly working: string;
  /** Processor time since the last report, whole ms; default 0. */
  readonly spentMs?: number;
}

/**
 * Writes a running job's state; progress never falls, even across attempts. Also renews the lock:
 * BullMQ stops doing so when an abandoned attempt at the same job ends in the same process.
 */
export async function reportProgress(
  redis: Redis,
  { jobId, token, lockMs, working, spentMs = 0 }: Holder,
  { progress, ...rest }: ExtractProgress,
): Promise<AttemptState> {
  // `progress` comes first: the script replaces it without re-encoding the rest.
  const text = JSON.stringify({ progress, ...rest });
  const keys = [recordKey('extract', jobId), lockOf(jobId)];
  return (await report.run(redis, keys, [
    token,
    text,
    CHANGE_CHANNEL,
    jobId,
    lockMs,
    working,
    spentMs,
  ])) as AttemptState;
}

/** `claimed`: it waited; the caller now fails it, using the token. `notified`: its worker was. */
type CancelOutcome = 'missing' | 'finished' | 'claimed' | 'notified';

const cancel = loadScript(new URL('./lua/bullmq/job-cancel.lua', import.meta.url));

/**
 * Marks the job as cancelled and notifies its worker. The flag decides; the message only speeds it
 * up, since a worker that is not subscribed yet misses it.
 */
export async function markCancelled(redis: Redis, jobId: string, token: string): Promise<CancelOutcome> {
  const keys = [...QUEUE_PLACES_KEYS, recordKey('extract', jobId), lockOf(jobId)];
  return (await cancel.run(redis, keys, [jobId, token, CANCEL_CHANNEL, CHANGE_CHANNEL])) as CancelOutcome;
}

const remove = loadScript(new URL('./lua/bullmq/job-remove.lua', import.meta.url));

/** Removes an extraction that BullMQ cannot read. @param indexes sets that have its id */
export async function removeExtraction(
  redis: Redis,
  jobId: string,
  indexes: readonly string[],
): Promise<void> {
  const parentId = completionId(jobId);
  const keys = [recordKey('extract', jobId), recordKey('completion', parentId), ...indexes];
  await remove.run(redis, keys, [jobId, parentId, keyOf('extract', ''), keyOf('completion', '')]);
}

const locks = loadScript(new URL('./lua/bullmq/held-jobs.lua', import.meta.url));

/** Locked jobs with their tokens; a BullMQ worker's tokens start with its id and a colon. */
export async function heldJobs(
  redis: Redis,
  queue: QueueName,
): Promise<{ readonly jobId: string; readonly token: string }[]> {
  const flat = (await locks.run(redis, [keyOf(queue, 'active')], [keyOf(queue, '')])) as string[];
  return flat.flatMap((jobId, index) => (index % 2 === 0 ? [{ jobId, token: flat[index + 1] ?? '' }] : []));
}

const firstOfOthers = loadScript(new URL('./lua/bullmq/first-of-others.lua', import.meta.url));

/** Makes the first job of a key that is not `served`, nor paused, the next to be taken, if any. */
export async function bringFirst(redis: Redis, served: readonly string[]): Promise<boolean> {
  const keys = ['prioritized', 'wait', 'marker'].map((part) => keyOf('extract', part));
  const args = [keyOf('extract', ''), apiKeyKey(''), ...served];
  return (await firstOfOthers.run(redis, keys, args)) === 1;
}

/** Has a worker act on a larger concurrency: a full one waits until one of its jobs ends. */
export function noticeConcurrency(worker: Worker): void {
  const { mainLoopQueue } = worker as unknown as {
    readonly mainLoopQueue: { add(fetched: Promise<undefined>): void } | null;
  };
  mainLoopQueue?.add(Promise.resolve(undefined));
}

/** Puts a job back in its place, as if it had not been taken. Uses up no attempt. */
export async function returnUnstarted(
  redis: Redis,
  queue: QueueName,
  job: Job,
  token: string | undefined,
): Promise<void> {
  // Nothing was reported: it has never run.
  if (job.progress === 0) await redis.hdel(recordKey(queue, job.id ?? ''), 'processedOn');
  await job.moveToWait(token);
  if (queue === 'extract') await wakeWorker(redis);
}

/** Wakes an idle worker: after `moveToWait` BullMQ does not, and workers poll only every 5 s. */
export async function wakeWorker(redis: Redis): Promise<void> {
  await redis.zadd(keyOf('extract', 'marker'), 0, '0');
}

export interface Ended {
  readonly jobId: string;
  readonly endedAtMs: number;
}

/** Ended extractions by end time. `from` is a Redis bound: `-inf`, `5`, or `(5` for above 5. */
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

const ends = loadScript(new URL('./lua/bullmq/ends-note.lua', import.meta.url));
const unfinished = loadScript(new URL('./lua/bullmq/unfinished-sort.lua', import.meta.url));
/** In one script, so that it holds up Redis for some milliseconds at most. */
const ENDS_AT_ONCE = 1000;

/**
 * Moves jobs that have ended since the last time to the indexes of their states.
 * @param cursors hash: up to which end each of BullMQ's sets was read
 * @param pages of a thousand jobs, at most
 */
export async function fileEnds(
  redis: Redis,
  cursors: string,
  pages = Number.POSITIVE_INFINITY,
): Promise<void> {
  for (const outcome of ['completed', 'failed']) {
    const keys = [keyOf('extract', outcome), cursors];
    for (let page = 0; page < pages; page += 1) {
      if ((await ends.run(redis, keys, [outcome, redisNow(), ENDS_AT_ONCE])) === 0) break;
    }
  }
}

/**
 * Files a tenant's jobs that have ended or are cancelled.
 * @returns ids in that state, each with its score
 */
export async function fileUnfinished(
  redis: Redis,
  unfinishedKey: string,
  tenant: string,
  status: JobStatus | undefined,
): Promise<string[]> {
  return (await unfinished.run(redis, [unfinishedKey], [tenant, status ?? ''])) as string[];
}

const pending = loadScript(new URL('./lua/bullmq/pending-count.lua', import.meta.url));

/** How many of a queue's jobs are unfinished in each set of ids; few ended ones may be counted. */
export async function countPending(
  redis: Redis,
  queue: QueueName,
  sets: readonly string[],
): Promise<number[]> {
  return (await pending.run(redis, sets, [keyOf(queue, '')])) as number[];
}

const oldest = loadScript(new URL('./lua/bullmq/oldest-wait.lua', import.meta.url));

/** The longest wait, ms; 0 if no job waits. One script, whatever the length of the queue. */
export async function oldestWaitMs(redis: Redis, queue: QueueName): Promise<number> {
  const keys = ['prioritized', 'wait', 'delayed'].map((part) => keyOf(queue, part));
  const args = [redisNow(), keyOf(queue, ''), queue === 'extract' ? '1' : '0'];
  return (await oldest.run(redis, keys, args)) as number;
}
