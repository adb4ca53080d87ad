/** Failures of a request to an address that a caller chose. */

/** What operators set to open an address. */
export const OPENING = 'the operator can open it with OUTBOUND_ALLOW=host:port';

const NOT_ALLOWED =
  'the address is not allowed: it must be public and on an open port, with https for webhooks and destinations, unless the operator opens it with OUTBOUND_ALLOW';

/**
 * The guard refused the request. The message never varies, so that a caller cannot map a network by
 * it; {@link reason} is exact: for the log, and for callers on this machine. {@link explained} is
 * for all callers: it says what their own URL shows, and never what a name resolves to.
 */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused';
  readonly reason: string;
  /** For the caller who wrote the address; not where a redirect may have led to it. */
  readonly explained: string;
  /** @param told the reason and the remedy, as far as they follow from the URL itself */
  constructor(reason: string, told = `it does not lead to a public address; ${OPENING}`) {
    super(NOT_ALLOWED);
    this.reason = reason;
    this.explained = `the address is not allowed: ${told}`;
  }
}

/** `status`: an answer that is no success; all others got no whole answer. */
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
  /** The server's Retry-After, in seconds. */
  readonly retryAfterSeconds?: number;
  /** The original error; it may name addresses, so it belongs in logs only. */
  readonly cause?: unknown;
}

/** The request failed. The message is safe for callers: it never has an address or URL. */
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

const UNSENT = new Set<FailureKind>(['dns', 'connect', 'tls']);

/** Whether the request surely did not reach the server, so that repeating it doubles nothing. */
export function neverSent(error: unknown): boolean {
  if (error instanceof OutboundRefused) return true;
  // A connection that timed out is kind `timeout`, too.
  return error instanceof OutboundFailed && (UNSENT.has(error.kind) || error.message === unreachable);
}

// Turns errors of undici, TLS and sockets into one error that says what to do, without addresses.

type Outcome = readonly [kind: OutboundFailed['kind'], message: string, retryable: boolean];

const unreachable = 'the server could not be reached';
const slow = 'the server took too long to answer';
const broken = 'the connection broke before the end';
const notHttp = 'the server did not answer in valid HTTP';

const byCode: Readonly<Record<string, Outcome>> = {
  ECONNREFUSED: ['connect', unreachable, true],
  EHOSTUNREACH: ['connect', unreachable, true],
  ENETUNREACH: ['connect', unreachable, true],
  EADDRNOTAVAIL: ['connect', unreachable, true],
  ETIMEDOUT: ['timeout', unreachable, true],
  UND_ERR_CONNECT_TIMEOUT: ['timeout', unreachable, true],
  UND_ERR_HEADERS_TIMEOUT: ['timeout', slow, true],
  UND_ERR_BODY_TIMEOUT: ['timeout', slow, true],
  ECONNRESET: ['reset', broken, true],
  EPIPE: ['reset', broken, true],
  UND_ERR_SOCKET: ['reset', broken, true],
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: ['reset', broken, true],
  // Closed by this process when it ends.
  UND_ERR_DESTROYED: ['reset', broken, true],
  UND_ERR_CLOSED: ['reset', broken, true],
  UND_ERR_HEADERS_OVERFLOW: ['protocol', notHttp, false],
};

/** Node's codes for an invalid certificate or failed handshake (OpenSSL's X509_V_ERR_* names). */
const tlsCode = /^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|EPROTO)/;

export function toOutboundError(error: unknown): OutboundRefused | OutboundFailed {
  if (error instanceof OutboundRefused || error instanceof OutboundFailed) return error;
  const code = codeOf(error);
  const known = byCode[code];
  if (known !== undefined) return new OutboundFailed(...known, { cause: error });
  if (tlsCode.test(code)) {
    return new OutboundFailed('tls', 'no trusted TLS connection could be made', false, { cause: error });
  }
  return new OutboundFailed('protocol', notHttp, false, { cause: error });
}

/** The same for errors within a body: a parse error there means that the body was cut off. */
export function toBodyError(error: unknown): OutboundFailed | OutboundRefused {
  if (error instanceof Error && error.name === 'HTTPParserError') {
    return new OutboundFailed('reset', broken, true, { cause: error });
  }
  return toOutboundError(error);
}

/** If all addresses fail, Node's AggregateError may have the code only in its parts. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error instanceof AggregateError ? codeOf(error.errors[0]) : '';
}
