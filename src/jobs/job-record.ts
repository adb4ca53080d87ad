/**
 * The BullMQ job is the job's record: its hash in Redis is read with one HGETALL and the state derived from it. Two calls
 * (`getJob`, then `getState`) can see two different moments; this cannot.
 */
import { ErrorBody } from 'soundpost-contract/errors';
import type { JobStatus } from 'soundpost-contract/job';
import type { Redis } from 'soundpost-kit/redis/connection';
import { fetchExtraction, readExtraction, type StoredExtraction } from './bullmq-internals.ts';
import { voiceId } from './names.ts';
import { ExtractPayload, ExtractProgress, ExtractResult } from './payloads.ts';

export interface JobRecord {
  readonly jobId: string;
  readonly payload: ExtractPayload;
  readonly status: JobStatus;
  readonly progress: ExtractProgress | null;
  readonly result: ExtractResult | null;
  readonly error: ErrorBody | null;
  /** The files were erased at the caller's wish. */
  readonly erased: boolean;
  /** Id of the latest sending as a voice message; null when none was asked for. */
  readonly voiceSendId: string | null;
  /** ms since the epoch. */
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
}

export const cancelledError: ErrorBody = { code: 'JOB_CANCELLED', message: 'the job was cancelled' };
export const deadlyError: ErrorBody = {
  code: 'INTERNAL_ERROR',
  message: 'the job was given up: each worker that began it was lost in the middle of it',
};

/** Undefined when there is no such job. Throws when its record is not one that this version can read. */
export async function findJobRecord(redis: Redis, jobId: string): Promise<JobRecord | undefined> {
  return readJobRecord(jobId, await fetchExtraction(redis, jobId));
}

/** See {@link findJobRecord}. Undefined also of a job that its API has not confirmed. */
export function readJobRecord(jobId: string, hash: Readonly<Record<string, string>>): JobRecord | undefined {
  const stored = readExtraction(hash);
  return stored?.isConfirmed ? recordOf(jobId, stored) : undefined;
}

export function recordOf(jobId: string, stored: StoredExtraction): JobRecord {
  const payload = ExtractPayload.parse(JSON.parse(stored.data));
  const status = statusOf(stored);
  return {
    jobId,
    payload,
    status,
    progress: readProgress(stored.progress),
    result: status === 'completed' ? ExtractResult.parse(JSON.parse(stored.result ?? '')) : null,
    error: status === 'failed' ? errorOf(stored) : null,
    erased: stored.isErased,
    voiceSendId: stored.voiceSendId ?? (payload.options.voiceMessage ? voiceId(jobId) : null),
    createdAtMs: stored.createdAtMs,
    startedAtMs: stored.startedAtMs,
    finishedAtMs: stored.finishedAtMs,
  };
}

function statusOf({ isCancelled, result, startedAtMs, finishedAtMs }: StoredExtraction): JobStatus {
  // A cancellation counts from the moment it was taken: a worker that was just then finishing does not undo it.
  if (isCancelled) {
    return 'failed';
  }
  if (finishedAtMs !== null) {
    // What an earlier attempt failed of survives a later success, so a result is looked for first.
    return result === undefined ? 'failed' : 'completed';
  }
  return startedAtMs === null ? 'queued' : 'processing';
}

function errorOf({ isCancelled, failure }: StoredExtraction): ErrorBody {
  return isCancelled ? cancelledError : readFailure(failure);
}

function readProgress(text: string): ExtractProgress | null {
  const parsed = ExtractProgress.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : null;
}

/** Our failures are JSON with a code of the catalogue; anything else is BullMQ's own, such as a stall. */
export function readFailure(reason: string | undefined): ErrorBody {
  try {
    return ErrorBody.parse(JSON.parse(reason ?? ''));
  } catch {
    return { code: 'INTERNAL_ERROR', message: 'the job could not be finished: its workers were lost' };
  }
}
