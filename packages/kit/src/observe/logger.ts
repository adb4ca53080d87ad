/** Structured logs through pino, with secrets removed before they are written. */
import { type Logger, pino } from 'pino';

export type { Logger };

/** Paths that pino redacts in every record: keys, secrets, signatures, media keys. */
const redactedPaths = [
  'apiKey',
  'apikey',
  'secret',
  'mediaKey',
  'signature',
  'password',
  'token',
  '*.apiKey',
  '*.apikey',
  '*.secret',
  '*.mediaKey',
  '*.signature',
  '*.password',
  '*.token',
  'headers["x-api-key"]',
  'headers.apikey',
  'headers.authorization',
  'headers.cookie',
  '*.headers["x-api-key"]',
  '*.headers.apikey',
  '*.headers.authorization',
  '*.headers.cookie',
];

/**
 * Logged fields of an error, besides name, message, stack and causes. Others may hold payloads:
 * ioredis attaches commands with all their data, xmpp.js the stanza, URL the unparsable address.
 */
const errorFields = [
  'code',
  'condition',
  'details',
  'ending',
  'errno',
  'reason',
  'status',
  'stderr',
  'syscall',
];
const DEEPEST_CAUSE = 5;

function errorForLog(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) {
    return error;
  }
  const fields = errorFields
    .filter((name) => name in error)
    .map((name) => [name, error[name as keyof Error]]);
  const inner = (cause: unknown): unknown =>
    depth < DEEPEST_CAUSE && cause instanceof Error ? errorForLog(cause, depth + 1) : undefined;
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...Object.fromEntries(fields),
    cause: inner(error.cause),
    errors: error instanceof AggregateError ? error.errors.map(inner) : undefined,
  };
}

/**
 * @param level one of pino's levels, or `silent`
 * @param destination a file descriptor or stream; default stderr
 * @param mixin adds fields to each record when it is written
 */
export function createLogger(
  level: string,
  destination?: { write(line: string): void },
  mixin?: () => object,
): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      ...(mixin === undefined ? {} : { mixin }),
      redact: { paths: redactedPaths, censor: '[redacted]' },
      serializers: {
        err: (error: unknown) => errorForLog(error),
        error: (error: unknown) => errorForLog(error),
      },
    },
    destination ?? pino.destination(2),
  );
}

/** The use of keys and changes of keys; never the secret. */
interface AuditRecord {
  readonly event:
    | 'key used'
    | 'key refused'
    | 'key created'
    | 'key rotated'
    | 'key revoked'
    | 'key paused'
    | 'key stopped'
    | 'key resumed';
  /** Id of the key; left out if the value sent has no valid form. */
  readonly key?: string | undefined;
  /** Id of the key that made the change; left out at start and for the command line. */
  readonly by?: string;
  /** Method and route: `POST /v1/jobs/:jobId/retry`. */
  readonly route?: string;
  /** Status of the answer; `aborted` if the caller disconnected. */
  readonly outcome?: number | 'aborted';
  readonly address?: string | undefined;
  readonly requestId?: string;
}

export type AuditLog = (record: AuditRecord) => void;

/** Records with `audit: true` in the same log, at every level except `silent`. */
export function createAuditLog(logger: Logger): AuditLog {
  const level = logger.level === 'silent' ? 'silent' : 'info';
  // These records need no redaction, which costs more than all the rest of writing them.
  const audit = logger.child({ audit: true }, { level, redact: [] });
  return ({ event, ...fields }) => audit[event === 'key refused' ? 'warn' : 'info'](fields, event);
}
