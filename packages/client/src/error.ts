/** Errors of the client. */
import type { ErrorBody } from 'soundpost-contract/errors';

/**
 * - A code of the service's catalogue.
 * - `NETWORK_ERROR`: no answer came, or not the whole of it; `cause` says why.
 * - `UNEXPECTED_ANSWER`: the answer is not from the service, but for example from a proxy.
 */
export type SoundpostErrorCode = ErrorBody['code'] | 'NETWORK_ERROR' | 'UNEXPECTED_ANSWER';

/** The request failed or was refused, or the job failed. */
export class SoundpostError extends Error {
  override readonly name = 'SoundpostError';
  readonly code: SoundpostErrorCode;
  /** 0 without a whole answer; 200 for a failed job. */
  readonly httpStatus: number;
  /** Every invalid field of the request with its path, or the cause if it is known. */
  readonly details: string | undefined;
  /** Quote this when you report an error to the service's operator. */
  readonly requestId: string | undefined;
  /** Wait this long before the next attempt. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    { code, message, details }: { code: SoundpostErrorCode; message: string; details?: string | undefined },
    answer: {
      httpStatus: number;
      requestId?: string | undefined;
      retryAfterSeconds?: number | undefined;
      cause?: unknown;
    },
  ) {
    super(`${code}: ${message}${details === undefined ? '' : ` (${details})`}`, { cause: answer.cause });
    this.code = code;
    this.httpStatus = answer.httpStatus;
    this.details = details;
    this.requestId = answer.requestId;
    this.retryAfterSeconds = answer.retryAfterSeconds;
  }
}
