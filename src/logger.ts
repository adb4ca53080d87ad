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

/** @param level one of pino's levels, or `silent`. @param destination a file descriptor or stream; default stderr. */
export function createLogger(level: string, destination?: { write(line: string): void }): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: redactedPaths, censor: '[redacted]' },
      serializers: {
        err: (error: unknown) => errorForLog(error),
        error: (error: unknown) => errorForLog(error),
      },
    },
    destination ?? pino.destination(2),
  );
}
