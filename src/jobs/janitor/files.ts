/**
 * Removes files of ended jobs. BullMQ keeps these in two sorted sets scored by end time; each walk
 * covers one set, from where it last stopped up to the jobs that just became old enough.
 */

import { redisNow } from 'soundpost-kit/redis/clock';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { pendingNames } from '../../followups/state/destinations.ts';
import { readTranscripts, type TranscriptProgress } from '../../followups/state/transcripts.ts';
import { hasVoiceEnded } from '../../followups/state/voice.ts';
import { type Ended, endedBetween, fetchExtraction, readExtraction } from '../bullmq-internals.ts';
import { repairIndexes, timeIndexes } from '../job-index.ts';
import { type JobRecord, recordOf } from '../job-record.ts';
import { besideAudio } from '../names.ts';
import { filesOf, storageKeysOf } from '../payloads.ts';
import { possibleFiles } from '../unreadable-jobs.ts';
import type { SweepContext } from './context.ts';

interface EndedJob {
  readonly record: JobRecord;
  /** Of all attempts, and of the winning one even if the job was cancelled at that moment. */
  readonly files: readonly string[];
}

interface Walk {
  /** The walk stores its position under this name. */
  readonly name: string;
  readonly set: 'completed' | 'failed';
  readonly afterSeconds: (context: SweepContext) => number;
  readonly filesOf: (ended: EndedJob) => readonly string[];
}

/** Clocks differ, and a job can appear in its set a moment after the time of its score. */
const SETTLED_SECONDS = 60;

const settled = (): number => SETTLED_SECONDS;
/** A result needs its record to be downloaded. */
const expired = ({ outputTtlSeconds, jobTtlSeconds }: SweepContext): number =>
  Math.max(SETTLED_SECONDS, Math.min(outputTtlSeconds, jobTtlSeconds));

const walks: readonly Walk[] = [
  { name: 'completed-settled', set: 'completed', afterSeconds: settled, filesOf: lostFiles },
  { name: 'failed-settled', set: 'failed', afterSeconds: settled, filesOf: lostFiles },
  { name: 'completed-expired', set: 'completed', afterSeconds: expired, filesOf: allFiles },
  // Once more: a worker that lost its job unnoticed may have published after the first walk.
  { name: 'failed-expired', set: 'failed', afterSeconds: expired, filesOf: allFiles },
];

/** Hash: job → files needed past their expiry, space-separated. The key's name is historical. */
const STILL_NEEDED = ownKey('janitor-voices');
const CURSORS = ownKey('janitor');
const PAGE = 500;

/** Returns how many files it asked the storage to remove. */
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

/** A full page can split jobs of one millisecond: its last one's move to the next page. */
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
  const keys = walk.filesOf(ended);
  if (keys.length === 0) return 0;
  const needed = await neededFiles(ended, context);
  const kept = keys.filter((key) => needed.includes(key));
  if (kept.length > 0) await context.redis.hset(STILL_NEEDED, jobId, kept.join(' '));
  const removed = keys.filter((key) => !needed.includes(key));
  for (const key of removed) {
    await context.removeObject(key);
  }
  return removed.length;
}

/** After an outage, follow-ups can outlast their files' keeping time. */
async function neededFiles({ record }: EndedJob, context: SweepContext): Promise<string[]> {
  if (record.status !== 'completed' || record.erased) return [];
  const { redis } = context;
  const transcripts = await readTranscripts(redis, record);
  const pending = await pendingNames(redis, record, transcripts);
  const toBePut = (record.result === null ? [] : filesOf(record.result)).filter(({ name }) =>
    pending.includes(name),
  );
  return [
    ...(await neededByVoice(record, context)),
    ...toBePut.map(({ storageKey }) => storageKey),
    ...transcripts.flatMap((transcript) => neededByTranscript(transcript, pending)),
  ];
}

/** Its audio until it ends; then its text, until that is delivered and has expired. */
function neededByTranscript(
  { audio, state, file }: TranscriptProgress,
  pending: readonly string[],
): string[] {
  if (state.status === 'pending') return [audio.storageKey, ...Object.values(besideAudio(audio))];
  if (file === undefined) return [];
  const isNeeded = pending.includes(file.name) || Date.parse(file.expiresAt) > redisNow();
  return isNeeded ? [file.storageKey] : [];
}

/** The audio of a voice message that is not sent yet. */
async function neededByVoice(record: JobRecord, { redis }: SweepContext): Promise<string[]> {
  const { voiceSendId, result } = record;
  if (voiceSendId === null || result === null || (await hasVoiceEnded(redis, record))) return [];
  const sent = result.voice ?? result.outputFile;
  return sent === null ? [] : [sent.storageKey];
}

/** Removes kept files whose follow-ups have ended, or whose job is unknown. */
async function removeUnneeded(context: SweepContext): Promise<number> {
  let removed = 0;
  for (const [jobId, kept] of Object.entries(await context.redis.hgetall(STILL_NEEDED))) {
    await context.proceed();
    const ended = await readEnded(jobId, context);
    const needed = ended === undefined ? [] : await neededFiles(ended, context);
    const keys = kept.split(' ');
    const unneeded = keys.filter((key) => !needed.includes(key));
    for (const key of unneeded) {
      await context.removeObject(key);
    }
    const left = keys.filter((key) => needed.includes(key));
    if (left.length === 0) await context.redis.hdel(STILL_NEEDED, jobId);
    else if (unneeded.length > 0) await context.redis.hset(STILL_NEEDED, jobId, left.join(' '));
    removed += unneeded.length;
  }
  return removed;
}

async function readEnded(jobId: string, { redis, logger }: SweepContext): Promise<EndedJob | undefined> {
  const stored = readExtraction(await fetchExtraction(redis, jobId));
  if (stored === undefined) return undefined;
  const record = recordOf(jobId, stored);
  if (record.unreadable !== undefined) {
    logger.warn({ jobId, why: record.unreadable.message }, 'the record of an ended job cannot be read');
  }
  return { record, files: await possibleFiles(jobId, stored) };
}

/** Files of attempts that the job's result does not use. Which these are, only its record tells. */
function lostFiles({ record, files }: EndedJob): string[] {
  if (record.unreadable !== undefined) return [];
  const kept = storageKeysOf(record.result);
  return files.filter((key) => !kept.includes(key));
}

function allFiles({ files }: EndedJob): readonly string[] {
  return files;
}

const trim = loadScript(new URL('./lua/job-index-trim.lua', import.meta.url));

/** Returns how many jobs were removed from the indexes. */
export async function sweepJobIndexes(context: SweepContext): Promise<number> {
  let removed = 0;
  const tenants = await context.redis.smembers(ownKey('keys'));
  await repairIndexes(context.redis, tenants);
  for (const tenant of tenants) {
    const [all = '', ...byState] = timeIndexes(tenant);
    removed += await trimIndex(context, all);
    for (const index of byState) await trimIndex(context, index);
  }
  return removed;
}

async function trimIndex({ redis, jobTtlSeconds, proceed }: SweepContext, index: string): Promise<number> {
  const endedBefore = redisNow() - jobTtlSeconds * 1000;
  let removed = 0;
  let kept = 0;
  for (;;) {
    await proceed();
    const args = [endedBefore, kept, PAGE];
    const [seen, gone] = (await trim.run(redis, [index], args)) as [number, number];
    removed += gone;
    kept += seen - gone;
    if (seen < PAGE) {
      return removed;
    }
  }
}
