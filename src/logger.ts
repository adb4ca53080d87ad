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
  // ioredis attaches the command to its errors, with whatever was to be stored.
  'err.command.args',
  'err.cause.command.args',
  'error.command.args',
];

/** @param level one of pino's levels, or `silent`. @param destination a file descriptor or stream; default stderr. */
export function createLogger(level: string, destination?: { write(line: string): void }): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: redactedPaths, censor: '[redacted]' },
    },
    destination ?? pino.destination(2),
  );
}
