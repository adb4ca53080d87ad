/** The two ways in which a request to an address that a caller chose can end badly. */

/**
 * The guard would not let the request out. The message is the same for every reason, so that a caller cannot map a
 * network by it; {@link reason} is exact and for the log only.
 */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused';
  readonly reason: string;
  constructor(reason: string) {
    super('the address is not allowed');
    this.reason = reason;
  }
}

/** What went wrong on the way; `status` is an answer that is no success, the rest never got a whole answer. */
type FailureKind =
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'status'
  | 'redirects'
  | 'encoding'
  | 'protocol'
  | 'too-large'
  | 'too-slow';

interface FailureDetails {
  /** HTTP status, for kind `status`. */
  readonly status?: number;
  /** What the server's Retry-After asked for, in seconds. */
  readonly retryAfterSeconds?: number;
  /** The error underneath; it may name addresses, so it belongs in logs only. */
  readonly cause?: unknown;
}

/** The request went out, or tried to, and failed. The message is fit for callers: it never holds an address or a URL. */
export class OutboundFailed extends Error {
  override readonly name = 'OutboundFailed';
  readonly kind: FailureKind;
  readonly retryable: boolean;
  readonly status: number | undefined;
  readonly retryAfterSeconds: number | undefined;
  constructor(kind: FailureKind, message: string, retryable: boolean, details: FailureDetails = {}) {
    super(message, { cause: details.cause });
    this.kind = kind;
    this.retryable = retryable;
    this.status = details.status;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}
