/** What goes wrong between a caller and the service. */
import type { ErrorBody } from 'soundpost-contract/errors';

/**
 * - A code of the service's catalogue.
 * - `NETWORK_ERROR`: no answer came; `cause` says why.
 * - `UNEXPECTED_ANSWER`: something answered that is not the service, such as a proxy in front of it.
 */
export type SoundpostErrorCode = ErrorBody['code'] | 'NETWORK_ERROR' | 'UNEXPECTED_ANSWER';

/** The service, or the way to it, refused a request; or a job failed. */
export class SoundpostError extends Error {
  override readonly name = 'SoundpostError';
  readonly code: SoundpostErrorCode;
  /** 0 where there was no answer; 200 for a job that failed. */
  readonly httpStatus: number;
  /** Every fault of the request with its path, or what is known of the cause. */
  readonly details: string | undefined;
  /** To be given along when a fault is reported to whoever runs the service. */
  readonly requestId: string | undefined;
  /** After which the same request may succeed. */
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
