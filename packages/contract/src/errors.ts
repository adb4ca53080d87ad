/**
 * The error catalogue of the extraction service: one row per code, with its HTTP status
 * (audio-extraction.md "Errors"; decisions A4, A6, A7). docs/reference/errors.md is generated from it.
 */
import { z } from 'zod';

/** Who has to act for the same request to succeed. */
type Blame = 'caller' | 'source' | 'service' | 'receiver';

export interface CatalogueEntry {
  /** HTTP status of an answer whose error has this code. */
  readonly httpStatus: number;
  readonly blame: Blame;
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean;
  /** What the code means, for a reader of docs/reference/errors.md. */
  readonly meaning: string;
  /** What to do about it. */
  readonly remedy: string;
}

export const errorCatalogue = {
  UNAUTHORIZED: {
    httpStatus: 401,
    blame: 'caller',
    retryable: false,
    meaning: 'The API key is missing, unknown or revoked.',
    remedy: 'Send a valid key in the X-API-Key header.',
  },
  FORBIDDEN: {
    httpStatus: 403,
    blame: 'caller',
    retryable: false,
    meaning: 'The key, or the signature of the URL, does not give access to this.',
    remedy: 'Use a key with the scope that the message names, or ask for a fresh URL.',
  },
  INVALID_REQUEST: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The payload is malformed, a required field is missing or a field is unknown.',
    remedy: 'Fix the fields that details lists.',
  },
  INVALID_SOURCE: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'source.type, source.url or source.file is not acceptable.',
    remedy: 'Give a public http(s) URL on an allowed port, or a complete upload of your own.',
  },
  INVALID_OUTPUT: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'A field of output is not acceptable for the format.',
    remedy: 'Fix the fields that details lists.',
  },
  INVALID_WEBHOOK: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The webhook URL is not acceptable, or did not answer 2xx to a test.',
    remedy: 'Give a public https URL that answers 2xx.',
  },
  INVALID_JOB_ID: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The job id is not of the form job_<16 hex>.',
    remedy: 'Use the jobId that the submission answered.',
  },
  TOO_MANY_JOBS: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'A batch holds more than 10 jobs.',
    remedy: 'Split the batch.',
  },
  INVALID_VIDEO: {
    httpStatus: 400,
    blame: 'source',
    retryable: false,
    meaning: 'The file is no media, is corrupt or is over the limits.',
    remedy: 'Check that the file plays, then submit it again.',
  },
  JOB_NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'No such job is known to this key.',
    remedy: 'Check the id; records are kept for JOB_TTL_SECONDS, 7 days unless the operator chose otherwise.',
  },
  BATCH_NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'No such batch is known to this key.',
    remedy: 'Check the id; records are kept for JOB_TTL_SECONDS, 7 days unless the operator chose otherwise.',
  },
  UPLOAD_NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'No such upload is known to this key, or it has expired.',
    remedy: 'Upload the file again; its expiresAt says how long it is kept.',
  },
  NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'There is nothing at this path.',
    remedy: 'Look the path up in /openapi.json.',
  },
  METHOD_NOT_ALLOWED: {
    httpStatus: 405,
    blame: 'caller',
    retryable: false,
    meaning: 'The path exists, but not with this method.',
    remedy: 'Use a method of the Allow header.',
  },
  JOB_NOT_COMPLETED: {
    httpStatus: 202,
    blame: 'service',
    retryable: true,
    meaning: 'The job has not finished yet.',
    remedy: 'Ask again after Retry-After seconds.',
  },
  EXTRACTION_FAILED: {
    httpStatus: 200,
    blame: 'source',
    retryable: false,
    meaning: 'The audio could not be extracted: no audio track, or nothing that the codec can hold.',
    remedy:
      'Read details: a video without sound has none to extract; otherwise choose another track, format or bitrate.',
  },
  DOWNLOAD_FAILED: {
    httpStatus: 200,
    blame: 'source',
    retryable: true,
    meaning: 'The video could not be downloaded from its URL.',
    remedy: 'Check that the URL is public and answers, then retry the job.',
  },
  JOB_CANCELLED: {
    httpStatus: 200,
    blame: 'caller',
    retryable: false,
    meaning: 'The job was cancelled.',
    remedy: 'Retry the job if it was cancelled by mistake.',
  },
  FILE_EXPIRED: {
    httpStatus: 410,
    blame: 'caller',
    retryable: false,
    meaning: 'The file, or the signed URL to it, is no longer available.',
    remedy: 'Read the job again for a fresh URL; when its file has expired, submit it again.',
  },
  PAYLOAD_TOO_LARGE: {
    httpStatus: 413,
    blame: 'caller',
    retryable: false,
    meaning: 'The body is larger than the limit.',
    remedy: 'Send less; the message names the limit.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    httpStatus: 415,
    blame: 'caller',
    retryable: false,
    meaning: 'The Content-Type is not one that this operation reads.',
    remedy: 'Send one of the types that the message names.',
  },
  IDEMPOTENCY_MISMATCH: {
    httpStatus: 422,
    blame: 'caller',
    retryable: false,
    meaning: 'The Idempotency-Key was used before with another body.',
    remedy: 'Use a new key for a new request.',
  },
  IDEMPOTENCY_IN_PROGRESS: {
    httpStatus: 409,
    blame: 'caller',
    retryable: true,
    meaning: 'The first request with this Idempotency-Key is still running.',
    remedy: 'Send the same request again in a moment.',
  },
  RATE_LIMITED: {
    httpStatus: 429,
    blame: 'caller',
    retryable: true,
    meaning:
      'The key has used up its requests, records or transcript minutes for now, or has too many unfinished jobs, uploads or event streams.',
    remedy: 'Wait for Retry-After seconds.',
  },
  QUEUE_FULL: {
    httpStatus: 503,
    blame: 'service',
    retryable: true,
    meaning: 'The processing queue is full.',
    remedy: 'Wait for Retry-After seconds.',
  },
  SERVICE_UNAVAILABLE: {
    httpStatus: 503,
    blame: 'service',
    retryable: true,
    meaning: 'A part that the service needs is unreachable, or there is no disk space for the file.',
    remedy: 'Wait for Retry-After seconds.',
  },
  INTERNAL_ERROR: {
    httpStatus: 500,
    blame: 'service',
    retryable: true,
    meaning: 'Something went wrong inside the service.',
    remedy: 'Try again; report the request id if it stays.',
  },
  TRANSCRIPT_FAILED: {
    httpStatus: 200,
    blame: 'service',
    retryable: false,
    meaning: 'The transcriber refused the audio, or could not be used for a day; the audio is not affected.',
    remedy: 'Read details, have the transcriber mended where it is at fault, then submit the job again.',
  },
  WEBHOOK_FAILED: {
    httpStatus: 200,
    blame: 'receiver',
    retryable: false,
    meaning: 'The webhook could not be delivered; the job itself is not affected.',
    remedy: 'Fix the receiver, then replay the delivery, or resend all that failed since a time.',
  },
  DESTINATION_FAILED: {
    httpStatus: 200,
    blame: 'receiver',
    retryable: false,
    meaning:
      'A finished file could not be put to its destination; the job itself is completed and its files can be downloaded.',
    remedy:
      'Read the message: a 403 mostly means that the address has expired. Replay the destination with a fresh address, or download the file.',
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

export const ErrorCode = z.enum(Object.keys(errorCatalogue) as [ErrorCode, ...ErrorCode[]]);

/** Codes of failed jobs; `GET /v1/status` and downloads answer them with 200 (decisions A4, A7). */
export const jobFailureCodes = [
  'DOWNLOAD_FAILED',
  'INVALID_VIDEO',
  'EXTRACTION_FAILED',
  'JOB_CANCELLED',
  'INTERNAL_ERROR',
] as const satisfies readonly ErrorCode[];

/** The `error` object of an envelope, of a failed job and of job.failed. */
export const ErrorBody = z.object({
  code: ErrorCode,
  message: z.string(),
  details: z.string().optional(),
});
export type ErrorBody = z.infer<typeof ErrorBody>;

/**
 * The only error that code throws for callers. They see its message and details unchanged, so these
 * hold no address, path or secret; what only operators may see goes into `cause`.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly details: string | undefined;
  /** Seconds for a Retry-After header, where waiting helps. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    more: { details?: string; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.code = code;
    this.details = more.details;
    this.retryAfterSeconds = more.retryAfterSeconds;
  }

  toBody(): ErrorBody {
    return {
      code: this.code,
      message: this.message,
      ...(this.details === undefined ? {} : { details: this.details }),
    };
  }
}
