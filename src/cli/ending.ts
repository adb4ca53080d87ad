/** Exit codes (decisions E: 0 done, 1 failed, 2 wrong usage, 130 interrupted) and error texts. */
import { CommanderError } from 'commander';
import { SoundpostError } from 'soundpost-client/error';
import { type ErrorCode, errorCatalogue, jobFailureCodes, ServiceError } from 'soundpost-contract/errors';
import { remedyOf } from 'soundpost-contract/remedies';
import { ConfigurationError } from '../process/config.ts';
import { printable } from './terminal-text.ts';

/** An impossible request: the message names the option or file, the rule and the remedy. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Ctrl-C, SIGTERM, or a closed terminal. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  constructor() {
    super('interrupted');
  }
}

/** The reader of standard output has gone: nothing can be reported. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone';
}

const CALLER_FAULTS = new Set([400, 401, 403, 404, 405, 415, 422]);

export function exitCodeOf(error: unknown): 0 | 1 | 2 | 130 {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof Interrupted) return 130;
  if (error instanceof UsageError || error instanceof ConfigurationError) return 2;
  if (error instanceof ServiceError || error instanceof SoundpostError) {
    return isCallersFault(error.code) ? 2 : 1;
  }
  // From the queue, which not every command loads.
  return error instanceof Error && error.name === 'ApiKeyConflict' ? 2 : 1;
}

function isCallersFault(code: string): boolean {
  const entry = code in errorCatalogue ? errorCatalogue[code as ErrorCode] : undefined;
  return (
    entry?.blame === 'caller' &&
    CALLER_FAULTS.has(entry.httpStatus) &&
    !(jobFailureCodes as readonly string[]).includes(code)
  );
}

/** What `--json` prints for an error, beside the sentence on standard error. */
export function errorAnswer(error: unknown): {
  error: { code: string; message: string; details?: string };
} {
  if (error instanceof ServiceError) return { error: error.toBody() };
  if (error instanceof SoundpostError) {
    const { code, details } = error;
    return { error: { code, message: plainMessage(error), ...(details === undefined ? {} : { details }) } };
  }
  const message = (error instanceof Error ? error.message : String(error)).replace(/^error: /, '');
  const codes = { 0: 'DONE', 1: 'FAILED', 2: 'WRONG_USAGE', 130: 'INTERRUPTED' } as const;
  return { error: { code: codes[exitCodeOf(error)], message } };
}

/** What happened, why, and the remedy if known. Undefined if there is nobody to read it. */
export function sentenceOf(error: unknown): string | undefined {
  if (error instanceof CommanderError || error instanceof ReaderGone) return undefined;
  if (error instanceof ServiceError || error instanceof SoundpostError) {
    const { code, details } = error;
    const message = error instanceof ServiceError ? error.message : plainMessage(error);
    const what = `${message}${details === undefined ? '' : ` (${details})`}`;
    const remedy = REMEDIES[code] ?? remedyHere(code, details ?? message);
    return `${code}: ${printable(what)}${remedy === '' ? '' : `\n  ${remedy}`}`;
  }
  return error instanceof Error ? error.message : String(error);
}

/**
 * Of a failed job by its cause, as the console says it; else the catalogue's, which are for
 * programs.
 */
function remedyHere(code: string, told: string): string {
  if ((jobFailureCodes as readonly string[]).includes(code)) return remedyOf(code, told).remedy;
  return code in errorCatalogue ? errorCatalogue[code as ErrorCode].remedy : '';
}

/** What the command line says instead. */
const REMEDIES: Readonly<Record<string, string>> = {
  UNAUTHORIZED:
    'Set SOUNDPOST_API_KEY to a valid key. To create one, run "soundpost keys create --name me" on the service\'s machine.',
  NETWORK_ERROR: 'Check that the service is running and that --server or SOUNDPOST_SERVER has its URL.',
  UNEXPECTED_ANSWER:
    'Check that --server is the URL of the API, such as http://127.0.0.1:8080. "soundpost serve" prints it.',
  NOT_FOUND: '',
  JOB_CANCELLED: '',
};

/** Without the code and details that SoundpostError adds. */
function plainMessage({ message, code, details, cause }: SoundpostError): string {
  const withoutCode = message.startsWith(`${code}: `) ? message.slice(code.length + 2) : message;
  const end = details === undefined ? '' : ` (${details})`;
  const plain = end !== '' && withoutCode.endsWith(end) ? withoutCode.slice(0, -end.length) : withoutCode;
  const reason = code === 'NETWORK_ERROR' ? reasonOf(cause) : undefined;
  return reason === undefined ? plain : `${plain}: ${reason}`;
}

/** The innermost non-empty message: fetch fails with "fetch failed". */
function reasonOf(error: unknown): string | undefined {
  let reason: string | undefined;
  for (let seen = error, depth = 0; seen instanceof Error && depth < 5; seen = seen.cause, depth += 1) {
    const errors = seen instanceof AggregateError ? seen.errors : [];
    const first: unknown = errors[0];
    reason = first instanceof Error ? first.message : seen.message || reason;
  }
  return reason;
}
