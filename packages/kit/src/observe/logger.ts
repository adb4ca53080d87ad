/** Structured logs through pino, with everything that must not leak taken out before it is written. */
import { type Logger, pino } from 'pino';

export type { Logger };

/** Paths that pino blanks wherever a record carries them: keys, secrets, signatures, media keys. */
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
 * What is written of an error besides its name, message, stack and causes. Anything else may hold what was being worked on: ioredis
 * attaches the commands with all that was to be stored, xmpp.js the stanza, URL the address that it could not read.
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
 * @param mixin adds to each record what is known when it is written
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

/** Who used which key for what, and what became of the keys themselves; never the secret. */
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
  /** Id of the key; left out where what was sent has not even the form of one. */
  readonly key?: string | undefined;
  /** Id of the key that made, rotated or revoked it; left out at the service's start and on the command line. */
  readonly by?: string;
  /** Method and path as the routes have it: `POST /v1/jobs/:jobId/retry`. */
  readonly route?: string;
  /** Status of the answer; `aborted` where the caller did not wait for it. */
  readonly outcome?: number | 'aborted';
  readonly address?: string | undefined;
  readonly requestId?: string;
}

export type AuditLog = (record: AuditRecord) => void;

/** Records that carry `audit: true`, among the others, and written whatever the level is, unless it is `silent`. */
export function createAuditLog(logger: Logger): AuditLog {
  const level = logger.level === 'silent' ? 'silent' : 'info';
  // Nothing to be redacted can be in such a record, and looking for it costs more than all else of writing it.
  const audit = logger.child({ audit: true }, { level, redact: [] });
  return ({ event, ...fields }) => audit[event === 'key refused' ? 'warn' : 'info'](fields, event);
}
