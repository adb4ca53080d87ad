/**
 * The BullMQ job is the job's record: its hash in Redis is read with one HGETALL and the state derived from it. Two calls
 * (`getJob`, then `getState`) can see two different moments; this cannot.
 */
import { z } from 'zod';
import { ErrorBody } from '../contract/errors.ts';
import type { JobStatus } from '../contract/job.ts';
import { voiceId } from './names.ts';
import { ExtractPayload, ExtractProgress, ExtractResult } from './payloads.ts';

/** Fields that we keep in BullMQ's hash beside its own. */
export const recordFields = {
  /** Set when the job was cancelled before it ended. */
  cancelled: 'spCancelled',
  /** The highest progress written so far: the fence that keeps it from going down. */
  progressFloor: 'spProgress',
  /** Tokens of all attempts, separated by commas: what the janitor finds their files by. */
  attempts: 'spAttempts',
  /** Set while an attempt works on the job, and left behind when its worker dies. */
  working: 'spWorking',
  /** How many attempts were lost with their workers. */
  lostStarts: 'spLostStarts',
  /** Set when the caller had the files of a finished job erased. */
  erased: 'spErased',
  /** Id of the latest sending as a voice message, when it is not the one of the submission. */
  voiceSend: 'spVoiceSend',
} as const;

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

const NATURAL = z.coerce.number().int().nonnegative();

/** BullMQ's hash of an extraction; what it holds besides is not ours to read. */
const ExtractHash = z.object({
  data: z.string(),
  timestamp: NATURAL,
  progress: z.string().optional(),
  processedOn: NATURAL.optional(),
  finishedOn: NATURAL.optional(),
  returnvalue: z.string().optional(),
  failedReason: z.string().optional(),
  [recordFields.cancelled]: z.string().optional(),
  [recordFields.erased]: z.string().optional(),
  [recordFields.voiceSend]: z.string().optional(),
});

/** What {@link readJobRecord} reads of the hash. */
export const jobFields: readonly string[] = Object.keys(ExtractHash.shape);

/** Undefined when there is no such job. Throws when the hash is not one that this version can read. */
export function readJobRecord(jobId: string, hash: Readonly<Record<string, string>>): JobRecord | undefined {
  if (hash.data === undefined) {
    return undefined;
  }
  const raw = ExtractHash.parse(hash);
  const payload = ExtractPayload.parse(JSON.parse(raw.data));
  const status = statusOf(raw);
  return {
    jobId,
    payload,
    status,
    progress: readProgress(raw.progress),
    result: status === 'completed' ? ExtractResult.parse(JSON.parse(raw.returnvalue ?? '')) : null,
    error: status === 'failed' ? errorOf(raw) : null,
    erased: raw[recordFields.erased] !== undefined,
    voiceSendId: raw[recordFields.voiceSend] ?? (payload.options.voiceMessage ? voiceId(jobId) : null),
    createdAtMs: raw.timestamp,
    startedAtMs: raw.processedOn ?? null,
    finishedAtMs: raw.finishedOn ?? null,
  };
}

type ExtractHash = z.infer<typeof ExtractHash>;

function statusOf(raw: ExtractHash): JobStatus {
  // A cancellation counts from the moment it was taken: a worker that was just then finishing does not undo it.
  if (raw[recordFields.cancelled] !== undefined) {
    return 'failed';
  }
  if (raw.finishedOn !== undefined) {
    // failedReason survives a later success, so a return value is looked for first.
    return raw.returnvalue === undefined ? 'failed' : 'completed';
  }
  return raw.processedOn === undefined ? 'queued' : 'processing';
}

function errorOf(raw: ExtractHash): ErrorBody {
  return raw[recordFields.cancelled] === undefined ? readFailure(raw.failedReason) : cancelledError;
}

function readProgress(text: string | undefined): ExtractProgress | null {
  // BullMQ writes 0 before the first report.
  const parsed = ExtractProgress.safeParse(JSON.parse(text ?? '0'));
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
