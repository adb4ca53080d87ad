/**
 * The files of ended jobs. BullMQ keeps the ended jobs in two sorted sets, scored by when they ended; each row of the table walks
 * one of them, from where it stopped last time up to the jobs that have just become old enough.
 */

import { type Ended, endedBetween, fetchExtraction, readExtraction } from '../queue/bullmq-internals.ts';
import { type JobRecord, recordOf } from '../queue/job-record.ts';
import { attemptFiles } from '../queue/names.ts';
import { ExtractResult } from '../queue/payloads.ts';
import { hasVoiceEnded } from '../queue/voice-state.ts';
import { redisNow } from '../redis/clock.ts';
import { ownKey } from '../redis/keys.ts';
import type { SweepContext } from './context.ts';

interface EndedJob {
  readonly record: JobRecord;
  /** What the winning attempt published, also when the job was cancelled in that moment. */
  readonly published: ExtractResult | undefined;
  readonly attemptTokens: readonly string[];
}

interface Walk {
  /** Under this name the walk remembers how far it came. */
  readonly name: string;
  readonly set: 'completed' | 'failed';
  readonly afterSeconds: (context: SweepContext) => number;
  readonly filesOf: (ended: EndedJob) => string[];
}

/** Clocks of workers differ, and a job may appear in its set a moment after the time that it is scored by. */
const SETTLED_SECONDS = 60;

const settled = (): number => SETTLED_SECONDS;
/** Without its record a result can no longer be asked for. */
const expired = ({ outputTtlSeconds, jobTtlSeconds }: SweepContext): number =>
  Math.max(SETTLED_SECONDS, Math.min(outputTtlSeconds, jobTtlSeconds));

const walks: readonly Walk[] = [
  { name: 'completed-settled', set: 'completed', afterSeconds: settled, filesOf: lostFiles },
  { name: 'failed-settled', set: 'failed', afterSeconds: settled, filesOf: lostFiles },
  { name: 'completed-expired', set: 'completed', afterSeconds: expired, filesOf: allFiles },
  // Once more: a worker that had lost its job without noticing may have published after the first time.
  { name: 'failed-expired', set: 'failed', afterSeconds: expired, filesOf: allFiles },
];

/** A hash: job → the file that its voice message still needs, although its time is over. */
const NEEDED_BY_VOICE = ownKey('janitor-voices');
const CURSORS = ownKey('janitor');
const PAGE = 500;

/** Returns how many files were asked to be removed. */
export async function sweepJobFiles(context: SweepContext): Promise<number> {
  let removed = await removeUnneeded(context);
  for (const walk of walks) {
    removed += await follow(walk, context);
  }
  return removed;
}

async function follow(walk: Walk, context: SweepContext): Promise<number> {
  const { redis } = context;
  const untilMs = redisNow() - walk.afterSeconds(context) * 1000;
  let from = (await redis.hget(CURSORS, walk.name)) ?? '-inf';
  let removed = 0;
  for (;;) {
    const page = await endedBetween(redis, walk.set, { from, untilMs, most: PAGE });
    const { jobIds, next } = stepOf(page, untilMs);
    for (const jobId of jobIds) {
      await context.proceed();
      removed += await removeFiles(walk, jobId, context);
    }
    await redis.hset(CURSORS, walk.name, next);
    if (page.length < PAGE) {
      return removed;
    }
    from = next;
  }
}

/** A full page may break off between jobs of one millisecond: those of its last one are left to the next page. */
function stepOf(page: readonly Ended[], untilMs: number): { jobIds: string[]; next: string } {
  const idsOf = (jobs: readonly Ended[]): string[] => jobs.map(({ jobId }) => jobId);
  if (page.length < PAGE) {
    return { jobIds: idsOf(page), next: `(${untilMs}` };
  }
  const last = page.at(-1)?.endedAtMs;
  const whole = page.filter(({ endedAtMs }) => endedAtMs !== last);
  return whole.length > 0
    ? { jobIds: idsOf(whole), next: String(last) }
    : { jobIds: idsOf(page), next: `(${last}` };
}

async function removeFiles(walk: Walk, jobId: string, context: SweepContext): Promise<number> {
  const ended = await readEnded(jobId, context);
  if (ended === undefined) {
    return 0;
  }
  const needed = await neededByVoice(ended, context);
  const keys = walk.filesOf(ended).filter((key) => key !== needed);
  if (needed !== undefined && walk.filesOf(ended).includes(needed)) {
    await context.redis.hset(NEEDED_BY_VOICE, jobId, needed);
  }
  for (const key of keys) {
    await context.removeObject(key);
  }
  return keys.length;
}

/** What a voice message is made of that is not sent yet: after an outage that may be later than its keeping time. */
async function neededByVoice({ record }: EndedJob, { redis }: SweepContext): Promise<string | undefined> {
  const { status, voiceSendId, result } = record;
  if (status !== 'completed' || voiceSendId === null || (await hasVoiceEnded(redis, record))) {
    return undefined;
  }
  return result?.voice?.storageKey ?? result?.outputFile.storageKey;
}

/** What was kept for voice messages that have ended meanwhile, or whose job is no longer known. */
async function removeUnneeded(context: SweepContext): Promise<number> {
  let removed = 0;
  for (const [jobId, key] of Object.entries(await context.redis.hgetall(NEEDED_BY_VOICE))) {
    await context.proceed();
    const ended = await readEnded(jobId, context);
    if (ended === undefined || (await neededByVoice(ended, context)) !== key) {
      await context.removeObject(key);
      await context.redis.hdel(NEEDED_BY_VOICE, jobId);
      removed += 1;
    }
  }
  return removed;
}

async function readEnded(jobId: string, { redis, logger }: SweepContext): Promise<EndedJob | undefined> {
  const hash = await fetchExtraction(redis, jobId);
  try {
    const stored = readExtraction(hash);
    if (stored === undefined) {
      return undefined;
    }
    const { result, attemptTokens } = stored;
    return {
      record: recordOf(jobId, stored),
      published: result === undefined ? undefined : ExtractResult.parse(JSON.parse(result)),
      attemptTokens,
    };
  } catch (error) {
    // One record of another version must not keep all others from being swept.
    logger.warn({ jobId, err: error }, 'the files of a job cannot be told from its record');
    return undefined;
  }
}

/** What the attempts left behind that the job's result does not point to. */
function lostFiles(ended: EndedJob): string[] {
  const { outputFile, voice } = ended.record.result ?? {};
  const kept = [outputFile?.storageKey, voice?.storageKey];
  return allFiles(ended).filter((key) => !kept.includes(key));
}

function allFiles({ record, published, attemptTokens }: EndedJob): string[] {
  const { output, options } = record.payload;
  const ofAttempts = attemptTokens.flatMap((token) => {
    const files = attemptFiles(record.jobId, token, output.format);
    return options.voiceMessage === undefined ? [files.output] : [files.output, files.voice];
  });
  const ofResult = [published?.outputFile.storageKey, published?.voice?.storageKey];
  return [...new Set([...ofAttempts, ...ofResult])].filter((key) => key !== undefined);
}
