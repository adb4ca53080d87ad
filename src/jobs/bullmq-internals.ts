/**
 * What we need of BullMQ that its public API does not offer (docs/decisions/0027-bullmq-by-its-public-api.md). Written for
 * {@link BULLMQ_VERSION}: nothing else in `src`, beside its scripts in lua/bullmq, names one of its keys, or a field of a job's hash, and no other
 * version is served.
 */

import bullmq from 'bullmq/package.json' with { type: 'json' };
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
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
import { apiKeyKey } from './tenants/api-keys.ts';

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

/** Where a job's record is, for those who ask whether it is there, or hand it to lua/bullmq/read-record.lua. */
export const recordKey = (queue: QueueName, jobId: string): string => keyOf(queue, jobId);

/** Fields of ours in an extraction's hash; lua/bullmq/names.lua has those that scripts alone know. */
export const own = {
  cancelled: 'spCancelled',
  /** Tokens of all attempts that had their turn, separated by commas. */
  attempts: 'spAttempts',
  erased: 'spErased',
  /** Its API knows that it is there, and answers that it is accepted. */
  confirmed: 'spConfirmed',
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

const note = loadScript(new URL('./lua/bullmq/field-note.lua', import.meta.url));

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

/** The gateway did not take the message, or somebody asks for it again: another try is no second message. */
export async function clearSending(redis: Redis, sendId: string): Promise<void> {
  await redis.hdel(recordKey('voice', sendId), SENDING);
}

/** What `readRecord` in lua/bullmq/read-record.lua reads. */
export const RECORD_FIELDS = Object.keys(ExtractionHash.shape);

/** What `readRecord` answered, as the hash. */
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

/** From now on those of the jobs that are there may be started. False when one of them is not there any more. */
export async function confirmJobs(redis: Redis, tenant: string, jobIds: readonly string[]): Promise<boolean> {
  const keys = jobIds.map((jobId) => recordKey('extract', jobId));
  const args = [ACCEPTED_CHANNEL, `${tenant} ${jobIds[0]}`, CHANGE_CHANNEL, ...jobIds];
  return (await confirm.run(redis, keys, args)) === 1;
}

const owner = loadScript(new URL('./lua/bullmq/owner-read.lua', import.meta.url));

/** The tenant of an extraction, undefined where there is no such job. */
export async function ownerOf(redis: Redis, jobId: string): Promise<string | undefined> {
  const tenant = await owner.run(redis, [recordKey('extract', jobId)], []);
  return typeof tenant === 'string' ? tenant : undefined;
}

const drop = loadScript(new URL('./lua/bullmq/unconfirmed-drop.lua', import.meta.url));

/** Settles that the job is never started. False when it was confirmed after all. */
export async function dropUnconfirmed(redis: Redis, jobId: string): Promise<boolean> {
  return (await drop.run(redis, [recordKey('extract', jobId)], [jobId])) === 1;
}

/** `lost`: the job was given to another worker, so the lock is not ours any more. */
export type AttemptState = 'held' | 'cancelled' | 'lost';
/** `unconfirmed`: its API has not said yet that it is accepted; `refused`: it was not, and never will be; `paused`: its key is. */
type StartState = AttemptState | 'unconfirmed' | 'refused' | 'paused';

const start = loadScript(new URL('./lua/bullmq/attempt-start.lua', import.meta.url));

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

const serve = loadScript(new URL('./lua/bullmq/served-note.lua', import.meta.url));

/**
 * Moves the virtual time of the queue on to the job, which has its turn now, or has ended without one (docs/decisions/0004-fairness.md).
 * @param attemptToken of an attempt that may leave files behind from now on
 */
export async function noteServed(redis: Redis, jobId: string, attemptToken = ''): Promise<void> {
  await serve.run(redis, [recordKey('extract', jobId), VIRTUAL_TIME_KEY], [attemptToken]);
}

const report = loadScript(new URL('./lua/bullmq/progress-report.lua', import.meta.url));

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
type CancelOutcome = 'missing' | 'finished' | 'claimed' | 'told';

const cancel = loadScript(new URL('./lua/bullmq/job-cancel.lua', import.meta.url));

/**
 * Marks the job as cancelled, whatever it is doing, and tells whoever runs it. The flag is what counts; the message
 * only makes it quick (a message alone is lost when the worker does not listen yet).
 */
export async function markCancelled(redis: Redis, jobId: string, token: string): Promise<CancelOutcome> {
  const keys = [...QUEUE_PLACES_KEYS, recordKey('extract', jobId), lockOf(jobId)];
  return (await cancel.run(redis, keys, [jobId, token, CANCEL_CHANNEL, CHANGE_CHANNEL])) as CancelOutcome;
}

const locks = loadScript(new URL('./lua/bullmq/held-jobs.lua', import.meta.url));

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

const WAITING_KEYS = [keyOf('extract', 'prioritized'), keyOf('extract', 'wait')];

const firstOfOthers = loadScript(new URL('./lua/bullmq/first-waiting.lua', import.meta.url));

/** The first job of the queue that is of none of these keys, or else the first of a key that is not `served`; none of a paused key. */
export async function firstWaiting(
  redis: Redis,
  served: readonly string[],
  others: readonly string[],
): Promise<WaitingJob | undefined> {
  const args = [keyOf('extract', ''), apiKeyKey(''), served.length, ...served, ...others];
  const found = await firstOfOthers.run(redis, WAITING_KEYS, args);
  if (found === null) return undefined;
  const [jobId, tenant, submittedAtMs, isInFront] = found as [string, string, string, 0 | 1];
  return { jobId, tenant, submittedAtMs: Number(submittedAtMs), isInFront: isInFront === 1 };
}

const forward = loadScript(new URL('./lua/bullmq/job-bring-forward.lua', import.meta.url));

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

const oldest = loadScript(new URL('./lua/bullmq/oldest-wait.lua', import.meta.url));

/** For how long the job has waited that has waited longest, ms; 0 when none waits. One script, whatever the length of the queue. */
export async function oldestWaitMs(redis: Redis, queue: QueueName): Promise<number> {
  const keys = ['prioritized', 'wait', 'delayed'].map((part) => keyOf(queue, part));
  const args = [redisNow(), keyOf(queue, ''), queue === 'extract' ? '1' : '0'];
  return (await oldest.run(redis, keys, args)) as number;
}
