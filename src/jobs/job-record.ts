/**
 * The BullMQ job is the job's record: one HGETALL reads its hash, and the state is derived from it.
 * `getJob` then `getState` could see two different moments.
 */
import { ErrorBody } from 'soundpost-contract/errors';
import type { JobStatus } from 'soundpost-contract/job';
import type { Redis } from 'soundpost-kit/redis/connection';
import { readText, UnreadableRecord } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { fetchExtraction, fetchGlance, readExtraction, type StoredExtraction } from './bullmq-internals.ts';
import { voiceId } from './names.ts';
import { ExtractPayload, ExtractProgress, ExtractResult, unknownPayload } from './payloads.ts';

export interface JobRecord {
  readonly jobId: string;
  readonly payload: ExtractPayload;
  readonly status: JobStatus;
  readonly progress: ExtractProgress | null;
  readonly result: ExtractResult | null;
  readonly error: ErrorBody | null;
  /** The caller had the files erased. */
  readonly erased: boolean;
  /** Id of the latest voice message; null if none was requested. */
  readonly voiceSendId: string | null;
  /** ms since the epoch. */
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  /**
   * Why this version cannot read it. It is shown as a failed job without request and files; only
   * the index of the tenant's jobs tells whose it is.
   */
  readonly unreadable?: UnreadableRecord;
}

export const cancelledError: ErrorBody = { code: 'JOB_CANCELLED', message: 'the job was cancelled' };
export const deadlyError: ErrorBody = {
  code: 'INTERNAL_ERROR',
  message: 'the job failed because every worker that started it crashed or was stopped',
};

/** Undefined if there is no such job. */
export async function findJobRecord(redis: Redis, jobId: string): Promise<JobRecord | undefined> {
  return readJobRecord(jobId, await fetchExtraction(redis, jobId));
}

/** For what acts on a job. Undefined if there is no such job. @throws UnreadableRecord */
export async function readableRecord(redis: Redis, jobId: string): Promise<JobRecord | undefined> {
  const record = await findJobRecord(redis, jobId);
  if (record?.unreadable !== undefined) throw record.unreadable;
  return record;
}

/** See {@link findJobRecord}. Also undefined for an unconfirmed job. */
export function readJobRecord(jobId: string, hash: Readonly<Record<string, string>>): JobRecord | undefined {
  const stored = readExtraction(hash);
  return stored?.isConfirmed ? recordOf(jobId, stored) : undefined;
}

export function recordOf(jobId: string, stored: StoredExtraction): JobRecord {
  try {
    return readable(jobId, stored);
  } catch (error) {
    if (!(error instanceof UnreadableRecord)) throw error;
    return unreadable(jobId, stored, error);
  }
}

function readable(jobId: string, stored: StoredExtraction): JobRecord {
  const payload = readText(ExtractPayload, stored.data);
  const status = statusOf(stored);
  return {
    jobId,
    payload,
    status,
    progress: readProgress(stored.progress),
    result: status === 'completed' ? readText(ExtractResult, stored.result ?? '') : null,
    error: status === 'failed' ? errorOf(stored) : null,
    erased: stored.isErased,
    voiceSendId: stored.voiceSendId ?? (payload.options.voiceMessage ? voiceId(jobId) : null),
    createdAtMs: stored.createdAtMs,
    startedAtMs: stored.startedAtMs,
    finishedAtMs: stored.finishedAtMs,
  };
}

function unreadable(jobId: string, stored: StoredExtraction, why: UnreadableRecord): JobRecord {
  const { createdAtMs, startedAtMs, finishedAtMs } = stored;
  return {
    ...{ jobId, payload: unknownPayload, status: 'failed', progress: null, result: null },
    error: { code: 'INTERNAL_ERROR', message: `the record of this job cannot be read: ${why.message}` },
    ...{ erased: false, voiceSendId: null, createdAtMs, startedAtMs, finishedAtMs, unreadable: why },
  };
}

/** What a list shows or searches a job by, without its request. */
export interface JobGlance extends Pick<JobRecord, 'jobId' | 'status' | 'finishedAtMs'> {
  /** Of its source, its files and as chosen. */
  readonly names: readonly string[];
}

const Names = z.array(z.string()).catch([]);
const Named = z.string().optional().catch(undefined);
/** Only what is needed of a result and a progress: each can list many files or tracks. */
const MadeFile = z.object({ outputFile: z.object({ filename: Named }).nullish() }).catch({});
const ReadFile = z.object({ inputFile: z.object({ name: Named }).nullish() }).catch({});

/** Undefined as for {@link findJobRecord}. */
export async function glanceAtJob(redis: Redis, jobId: string): Promise<JobGlance | undefined> {
  const stored = await fetchGlance(redis, jobId);
  if (!stored.isConfirmed) return undefined;
  const { finishedAtMs, names, progress, result = 'null' } = stored;
  const ofFiles = [
    MadeFile.parse(jsonOf(result)).outputFile?.filename,
    ReadFile.parse(jsonOf(progress)).inputFile?.name,
  ];
  return {
    ...{ jobId, status: statusOf(stored), finishedAtMs },
    names: [...Names.parse(jsonOf(names)), ...ofFiles.filter((one) => one !== undefined)],
  };
}

type StoredState = Pick<StoredExtraction, 'isCancelled' | 'result' | 'startedAtMs' | 'finishedAtMs'>;

function statusOf({ isCancelled, result, startedAtMs, finishedAtMs }: StoredState): JobStatus {
  // A cancellation stands once accepted, even if the worker is just finishing.
  if (isCancelled) {
    return 'failed';
  }
  if (finishedAtMs !== null) {
    // An earlier attempt's failure outlasts a later success, so check the result first.
    return result === undefined ? 'failed' : 'completed';
  }
  return startedAtMs === null ? 'queued' : 'processing';
}

function errorOf({ isCancelled, failure }: StoredExtraction): ErrorBody {
  return isCancelled ? cancelledError : readFailure(failure);
}

function readProgress(text: string): ExtractProgress | null {
  const parsed = ExtractProgress.safeParse(jsonOf(text));
  return parsed.success ? parsed.data : null;
}

/** Null for what is no JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Our failures are JSON with a catalogue code; others are BullMQ's own, such as a stall. */
export function readFailure(reason: string | undefined): ErrorBody {
  try {
    return ErrorBody.parse(JSON.parse(reason ?? ''));
  } catch {
    return { code: 'INTERNAL_ERROR', message: 'the job failed because its workers were lost' };
  }
}
