/** What can go wrong with media, by cause: the input, or this machine. */
import { MEMORY_BYTES } from './sandbox.ts';

type MediaFailureCode = 'INVALID_VIDEO' | 'EXTRACTION_FAILED';

/**
 * The input's fault: a retry cannot help (decisions A7). Callers see message and details unchanged,
 * so these hold no path and nothing that ffmpeg wrote.
 */
export class MediaFailure extends Error {
  override readonly name = 'MediaFailure';
  readonly code: MediaFailureCode;
  readonly details: string;

  constructor(code: MediaFailureCode, details: string, options?: { cause?: unknown }) {
    const message =
      code === 'INVALID_VIDEO' ? 'The file cannot be used.' : 'The audio could not be extracted.';
    super(message, options);
    this.code = code;
    this.details = details;
  }
}

/** Begins with the word by which callers tell it (decisions A7). @param what a clause */
export function encrypted(what: string): MediaFailure {
  return new MediaFailure('INVALID_VIDEO', `encrypted: ${what}; use a copy that is not encrypted`);
}

export type BadEnding =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'stalled'; readonly afterMs: number }
  | { readonly kind: 'wall-limit'; readonly afterMs: number }
  | { readonly kind: 'too-much-output'; readonly limitBytes: number };

/** A tool that was started and failed. For logs: `stderr` holds paths. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
  readonly ending: BadEnding;
  /** The end of what the tool wrote, at most 64 KiB. */
  readonly stderr: string;
  /** As Node names it, when the tool met a full disk. */
  readonly code: 'ENOSPC' | undefined;
  /** Less memory was free than the tool may use: it did not reach our limit but the machine's. */
  readonly machineWasShort = process.availableMemory() < MEMORY_BYTES;

  constructor(tool: string, ending: BadEnding, stderr: string) {
    super(`${tool} ended badly: ${JSON.stringify(ending)}`);
    this.ending = ending;
    this.stderr = stderr;
    this.code = DISK_FULL.test(stderr) ? 'ENOSPC' : undefined;
  }
}

// strerror(3) texts of this machine's faults, whatever the input was. ffmpeg indents what it
// repeats of a file's tags, so a title cannot pass for one.
const DISK_FULL = /^\S.*(No space left on device|Disk quota exceeded)/m;
const MACHINE_FAULT =
  /^\S.*(Read-only file system|Too many open files|Resource temporarily unavailable|received signal 15)/m;

/** How our limits end a tool: time, file size, a filter of system calls. */
const LIMIT_SIGNALS: readonly NodeJS.Signals[] = ['SIGXCPU', 'SIGXFSZ', 'SIGSYS'];

const NO_MEMORY = /^\S.*Cannot allocate memory/m;

/** ffmpeg's own code for more than two thirds of undecodable frames (-max_error_rate). */
export const TOO_MANY_DECODE_ERRORS = 69;

/**
 * A {@link MediaFailure} with `code` if the input made the run fail. Otherwise the error itself,
 * which is worth a retry: full disk, missing binary, crash, kill, memory.
 */
export function blameInput(error: unknown, code: MediaFailureCode, details: string): unknown {
  if (!(error instanceof ToolFailure)) return error;
  if (error.code !== undefined || MACHINE_FAULT.test(error.stderr)) return error;
  const { ending } = error;
  // A crash, the OOM killer or an operator: when this process ends a tool, it gives a reason.
  if (ending.kind === 'signal' && !LIMIT_SIGNALS.includes(ending.signal)) return error;
  if (error.machineWasShort && NO_MEMORY.test(error.stderr)) return error;
  if (ending.kind === 'exit' && ending.code === TOO_MANY_DECODE_ERRORS) {
    return new MediaFailure('INVALID_VIDEO', 'most of the audio could not be decoded', { cause: error });
  }
  if (ending.kind === 'stalled' || ending.kind === 'wall-limit' || isOverCpuLimit(error)) {
    return new MediaFailure(code, 'processing exceeded its time limit', { cause: error });
  }
  if (ending.kind === 'signal' && ending.signal === 'SIGXFSZ') {
    return new MediaFailure(code, 'the output would exceed the size limit', { cause: error });
  }
  return new MediaFailure(code, details, { cause: error });
}

/** ffmpeg catches SIGXCPU (24) and exits; ffprobe is ended by it. */
function isOverCpuLimit({ ending, stderr }: ToolFailure): boolean {
  return ending.kind === 'signal'
    ? ending.signal === 'SIGXCPU'
    : /^Exiting normally, received signal 24/m.test(stderr);
}
