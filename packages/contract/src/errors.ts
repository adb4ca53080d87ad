/**
 * The error catalogue of the extraction service: one row per code, with its HTTP status
 * (audio-extraction.md "Errors"; decisions A4, A6, A7). docs/reference/errors.md comes from it.
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
    meaning: 'The key or the signed URL does not give access to this.',
    remedy: 'Use a key with the scope that the message names, or read the job again for a fresh URL.',
  },
  INVALID_REQUEST: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The request is malformed, or a field is missing, invalid or unknown.',
    remedy: 'Fix the fields that details lists.',
  },
  INVALID_SOURCE: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The source is not valid.',
    remedy: 'Use a public http(s) URL on an allowed port, or a complete upload of yours.',
  },
  INVALID_OUTPUT: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'A field of the output is not valid for its format.',
    remedy: 'Fix the fields that details lists.',
  },
  INVALID_WEBHOOK: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The webhook URL is not valid, or did not answer a test with 2xx.',
    remedy: 'Use a public https URL that answers 2xx.',
  },
  INVALID_JOB_ID: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The job id does not have the form job_<16 hex>.',
    remedy: 'Use the jobId from the answer to your submission.',
  },
  TOO_MANY_JOBS: {
    httpStatus: 400,
    blame: 'caller',
    retryable: false,
    meaning: 'The batch has more than 10 jobs.',
    remedy: 'Split the batch.',
  },
  INVALID_VIDEO: {
    httpStatus: 400,
    blame: 'source',
    retryable: false,
    meaning: 'The source is not audio or video, is damaged, or exceeds a limit.',
    remedy: 'Read details, check that the file plays, then submit it again.',
  },
  JOB_NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'This key has no job with this id.',
    remedy: 'Check the id. Records are kept for 7 days, unless the operator set another JOB_TTL_SECONDS.',
  },
  BATCH_NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'This key has no batch with this id.',
    remedy: 'Check the id. Records are kept for 7 days, unless the operator set another JOB_TTL_SECONDS.',
  },
  UPLOAD_NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'This key has no upload with this id, or it has expired.',
    remedy: 'Upload the file again, and use it before its expiresAt.',
  },
  NOT_FOUND: {
    httpStatus: 404,
    blame: 'caller',
    retryable: false,
    meaning: 'Nothing was found at this path.',
    remedy: 'Check the path in /openapi.json.',
  },
  METHOD_NOT_ALLOWED: {
    httpStatus: 405,
    blame: 'caller',
    retryable: false,
    meaning: 'The path exists, but not with this method.',
    remedy: 'Use a method from the Allow header.',
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
    meaning: 'The audio could not be extracted, for example because there is no audio track.',
    remedy: 'Read details, then choose another track, format or bitrate, or a video that has sound.',
  },
  DOWNLOAD_FAILED: {
    httpStatus: 200,
    blame: 'source',
    retryable: true,
    meaning: 'The source could not be downloaded from its URL.',
    remedy: 'Check that the URL works without a sign-in, then retry the job.',
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
    remedy: 'Read the job again for a fresh URL. If its file has expired, submit the source again.',
  },
  PAYLOAD_TOO_LARGE: {
    httpStatus: 413,
    blame: 'caller',
    retryable: false,
    meaning: 'The body is larger than the limit.',
    remedy: 'Stay below the limit that the message names.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    httpStatus: 415,
    blame: 'caller',
    retryable: false,
    meaning: 'This operation does not accept the Content-Type.',
    remedy: 'Use a type that the message names.',
  },
  IDEMPOTENCY_MISMATCH: {
    httpStatus: 422,
    blame: 'caller',
    retryable: false,
    meaning: 'The Idempotency-Key was already used for a different request.',
    remedy: 'Use a new Idempotency-Key for each new request.',
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
      'The key has reached a limit: requests, records, transcript minutes, unfinished jobs, uploads or event streams.',
    remedy: 'Wait for Retry-After seconds.',
  },
  QUEUE_FULL: {
    httpStatus: 503,
    blame: 'service',
    retryable: true,
    meaning: 'The job queue is full.',
    remedy: 'Wait for Retry-After seconds.',
  },
  SERVICE_UNAVAILABLE: {
    httpStatus: 503,
    blame: 'service',
    retryable: true,
    meaning: 'Something the service depends on is unreachable, or its disk is full.',
    remedy: 'Wait for Retry-After seconds.',
  },
  INTERNAL_ERROR: {
    httpStatus: 500,
    blame: 'service',
    retryable: true,
    meaning: 'The service failed unexpectedly.',
    remedy: 'Try again. If it keeps failing, report the request id.',
  },
  TRANSCRIPT_FAILED: {
    httpStatus: 200,
    blame: 'service',
    retryable: false,
    meaning:
      'The transcriber rejected the audio, or was unavailable for 24 hours. The audio files are not affected.',
    remedy: 'Read details, fix the transcriber if needed, then submit the job again.',
  },
  WEBHOOK_FAILED: {
    httpStatus: 200,
    blame: 'receiver',
    retryable: false,
    meaning: 'The webhook could not be delivered. The job is not affected.',
    remedy: 'Fix the receiver, then replay the delivery or resend everything that failed.',
  },
  DESTINATION_FAILED: {
    httpStatus: 200,
    blame: 'receiver',
    retryable: false,
    meaning:
      'A finished file could not be uploaded to its destination. The job is completed, and you can download its files.',
    remedy:
      'Read the message (403 usually means that the address has expired). Replay the destination with a fresh address, or download the file.',
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
