/**
 * The only place that starts ffmpeg and ffprobe. A run has one owner: it is started in a process group of its own, ends
 * with the first reason that ends it, and leaves no process behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { lstat, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { type BadEnding, MediaFailure, ToolFailure } from './failure.ts';
import { FILTER_DESCRIPTOR, type FileAccess, MEMORY_BYTES, type Sandbox, sandboxPrefix } from './sandbox.ts';
import { seccompFilter } from './seccomp.ts';
import { keepTail, type Progress, watchProgress } from './tool-output.ts';
import { type RunWatch, watchedRun } from './watched-run.ts';

const SECOND = 1000;

/** ffmpeg ends a run tidily on SIGTERM, but not while it waits in an open(2) or a read(2). */
const TERM_TO_KILL_MS = 2 * SECOND;

/** ffmpeg reports at least each half second; a run that says nothing for this long hangs. */
const STALL_MS = 30 * SECOND;

// Not descriptor 3: a launcher may hold its lifeline to this process there.
const PROGRESS_DESCRIPTOR = 4;

export interface MediaTools {
  /** Absolute, for a sandbox shows nothing else outside of the system's own folders. */
  readonly ffmpegPath: string;
  readonly ffprobePath: string;
  /**
   * Command prefix for both tools, such as `['setpriv', '--pdeathsig', 'KILL', '--']`: it has to exec or to stay the parent of
   * what follows, pass descriptors on, and see to it that the tool ends with this process.
   */
  readonly launcher: readonly string[];
  /** The built confine.c, where there is one: without it no sandbox is had that does without user namespaces. */
  readonly confinePath?: string | undefined;
  /** From `detectSandbox`; left out: none, and no limits. */
  readonly sandbox?: Sandbox;
  /** Told of each run. */
  readonly watch?: RunWatch;
}

/** What a search for the tools comes to. */
export type FoundTools =
  | {
      readonly tools: Omit<MediaTools, 'sandbox'>;
      /** By script/ffmpeg, for this checkout. */
      readonly isBuiltHere: boolean;
    }
  | {
      readonly tools: undefined;
      /** What is not there, as a sentence. */
      readonly missing: string;
    };

export interface RunLimits {
  /** Ends the run and rejects with its reason. */
  readonly signal: AbortSignal;
  /** The longest that the run may take in all. */
  readonly wallLimitMs: number;
  /** What a sandbox lets the run reach; default nothing. */
  readonly access?: FileAccess;
  /** Private memory, bytes; default {@link MEMORY_BYTES}. */
  readonly maxMemoryBytes?: number;
  /** Time on processors, seconds; default the wall limit. */
  readonly maxCpuSeconds?: number;
  /** How long each file may become that is written; default 0, which leaves the pipes. */
  readonly maxFileBytes?: number;
}

export interface RunOptions extends RunLimits {
  readonly onProgress?: (progress: Progress) => void;
  /** Takes what the tool writes to standard output; left out, it is thrown away. */
  readonly onStdout?: (chunk: Buffer) => void;
}

interface RunResult {
  /** The last 64 KiB, with ffmpeg's closing statistics. For parsing and logs, never for callers: it holds paths. */
  readonly stderr: string;
  readonly lastProgress: Progress;
}

/**
 * Runs ffmpeg with arguments from `composeArguments`.
 * @throws {ToolFailure} when it ends in any other way than exit code 0 with its outputs whole; the signal's reason when it was aborted;
 * another error when it could not be started.
 */
export async function runFfmpeg(
  tools: MediaTools,
  args: readonly string[],
  options: RunOptions,
): Promise<RunResult> {
  const globals = [
    ...['-max_alloc', '268435456'],
    ...['-nostdin', '-hide_banner', '-y', '-benchmark'],
    // The closing statistics, which count packets and samples, are only written from this level on.
    ...['-v', 'verbose', '-nostats', '-progress', `pipe:${PROGRESS_DESCRIPTOR}`],
  ];
  const command = confined(tools, tools.ffmpegPath, [...globals, ...args], options);
  return watchedRun(tools.watch, 'ffmpeg', options.signal, async () => {
    const result = await supervise('ffmpeg', command, options, STALL_MS);
    if (UNFINISHED.test(result.stderr))
      throw new ToolFailure('ffmpeg', { kind: 'exit', code: 0 }, result.stderr);
    return result;
  });
}

/** A disk that is full when a small file is flushed at its end: ffmpeg says so, and exits with 0. */
const UNFINISHED = /^Error (writing trailer of|closing file) /m;

interface FfprobeOptions extends RunLimits {
  readonly maxStdoutBytes: number;
}

/** Runs ffprobe; its standard output is in the answer. Rejects as {@link runFfmpeg} does. */
export async function runFfprobe(
  tools: MediaTools,
  args: readonly string[],
  options: FfprobeOptions,
): Promise<RunResult & { stdout: string }> {
  const chunks: Buffer[] = [];
  const limits = ['-max_alloc', '268435456', '-hide_banner'];
  const command = confined(tools, tools.ffprobePath, [...limits, ...args], options);
  const result = await watchedRun(tools.watch, 'ffprobe', options.signal, () =>
    supervise(
      'ffprobe',
      command,
      { ...options, onStdout: (chunk) => chunks.push(chunk) },
      undefined,
      options.maxStdoutBytes,
    ),
  );
  return { ...result, stdout: Buffer.concat(chunks).toString('utf8') };
}

const NO_FILES: FileAccess = { reads: [], writes: [] };

interface ConfinedCommand {
  readonly argv: readonly string[];
  /** What the sandbox reads from {@link FILTER_DESCRIPTOR}; undefined where it reads none. */
  readonly filter: Buffer | undefined;
}

/** The tool, after the prefixes that end it with this process and keep it to what it needs. */
function confined(
  { launcher, sandbox, confinePath }: MediaTools,
  tool: string,
  args: readonly string[],
  options: RunLimits,
): ConfinedCommand {
  if (sandbox === undefined) return { argv: [...launcher, tool, ...args], filter: undefined };
  const { access = NO_FILES, wallLimitMs } = options;
  const limits = {
    memoryBytes: options.maxMemoryBytes ?? MEMORY_BYTES,
    cpuSeconds: options.maxCpuSeconds ?? wallLimitMs / SECOND,
    fileBytes: options.maxFileBytes ?? 0,
  };
  return {
    argv: [
      ...launcher,
      ...sandboxPrefix(sandbox, { tool, confine: confinePath }, access, limits),
      tool,
      ...args,
    ],
    filter: sandbox.level === 'none' ? undefined : seccompFilter(),
  };
}

/**
 * A FIFO or a device under the input's name would hang the tool for ever, and a symbolic link could lead anywhere.
 * @throws {MediaFailure} INVALID_VIDEO when the path is no regular file.
 */
export async function requireRegularFile(path: string): Promise<{ sizeBytes: number }> {
  const stats = await lstat(path);
  if (!stats.isFile()) throw new MediaFailure('INVALID_VIDEO', 'not a regular file');
  return { sizeBytes: stats.size };
}

async function supervise(
  tool: string,
  command: ConfinedCommand,
  options: RunOptions,
  stallMs: number | undefined,
  maxStdoutBytes = Number.POSITIVE_INFINITY,
): Promise<RunResult> {
  // A sandbox shows files that are there.
  for (const file of options.access?.writes ?? []) await writeFile(file, '', { flag: 'a', mode: 0o600 });
  options.signal.throwIfAborted();
  const child = start(command);
  const reaper = new Reaper(child);
  const { promise: closed, resolve: onClosed, reject: onError } = Promise.withResolvers<Exit>();
  child.once('error', onError);
  child.once('close', (code, signal) => onClosed({ code, signal }));

  let lastSign = Date.now();
  let lastProgress: Progress = { outSeconds: undefined };
  const stderr = keepTail(child.stderr);
  watchProgress(child.stdio[PROGRESS_DESCRIPTOR] as Readable, (progress) => {
    lastSign = Date.now();
    lastProgress = progress;
    options.onProgress?.(progress);
  });
  let stdoutBytes = 0;
  child.stdout?.on('data', (chunk: Buffer) => {
    stdoutBytes += chunk.length;
    if (stdoutBytes > maxStdoutBytes) reaper.end({ kind: 'too-much-output', limitBytes: maxStdoutBytes });
    else options.onStdout?.(chunk);
  });

  const onAbort = () => reaper.end('aborted');
  options.signal.addEventListener('abort', onAbort, { once: true });
  const wall = setTimeout(
    () => reaper.end({ kind: 'wall-limit', afterMs: options.wallLimitMs }),
    options.wallLimitMs,
  );
  const watchdog =
    stallMs === undefined
      ? undefined
      : setInterval(() => {
          if (Date.now() - lastSign > stallMs) reaper.end({ kind: 'stalled', afterMs: stallMs });
        }, SECOND);
  try {
    const exit = await closed;
    if (reaper.reason === 'aborted') throw options.signal.reason;
    const ending = reaper.reason ?? badEnding(exit);
    if (ending !== undefined) {
      throw NOT_STARTED.test(stderr()) ? notStarted(tool) : new ToolFailure(tool, ending, stderr());
    }
    return { stderr: stderr(), lastProgress };
  } finally {
    options.signal.removeEventListener('abort', onAbort);
    clearTimeout(wall);
    clearInterval(watchdog);
    reaper.close();
  }
}

/** What launchers say of a program that is not there; the tools' own names never stand first in a line like this. */
const NOT_STARTED =
  /^(prlimit|setpriv|soundpost-confine|env|bwrap|\/bin\/sh|sh): .*(failed to execute|execvp|not found)/m;

/** The same error as without a launcher, so that nobody takes a missing tool for a faulty file. */
function notStarted(tool: string): Error {
  return Object.assign(new Error(`${tool} could not be started`), { code: 'ENOENT' });
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const SIGNALS = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name as NodeJS.Signals]),
);

function badEnding({ code, signal }: Exit): BadEnding | undefined {
  // A launcher that stays the parent answers for a tool that a signal ended by 128 and the signal's number (POSIX 2.8.2).
  const ended = signal ?? SIGNALS.get((code ?? 0) - 128);
  if (ended !== undefined) return { kind: 'signal', signal: ended };
  return code === 0 || code === null ? undefined : { kind: 'exit', code };
}

function start({ argv: [file = '', ...args], filter }: ConfinedCommand): ChildProcess {
  const child = spawn(file, args, {
    // A process group of its own, so that one signal reaches the launcher and all that it started.
    detached: true,
    // Standard input is never written to: it is there for launchers that end with this process when it closes.
    stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'pipe', ...(filter === undefined ? [] : ['pipe' as const])],
    // FFREPORT, AV_LOG_* and a proxy must not reach ffmpeg; a tool elsewhere is named by its absolute path.
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C.UTF-8' },
  });
  const writer = child.stdio.at(FILTER_DESCRIPTOR) as Writable | null | undefined;
  // A sandbox that did not start reads nothing, which its exit tells.
  writer?.on('error', () => undefined).end(filter);
  return child;
}

/** Ends a process group once, for the first reason given: SIGTERM, then SIGKILL. */
class Reaper {
  reason: BadEnding | 'aborted' | undefined;
  readonly #child: ChildProcess;
  #kill: NodeJS.Timeout | undefined;

  constructor(child: ChildProcess) {
    this.#child = child;
    // Whatever the tool left behind in its group goes with it, before the id can be given to somebody else.
    child.once('exit', () => {
      if (this.reason !== undefined) this.#signalGroup('SIGKILL');
    });
  }

  end(reason: BadEnding | 'aborted'): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.#signalGroup('SIGTERM');
    this.#kill = setTimeout(() => this.#signalGroup('SIGKILL'), TERM_TO_KILL_MS);
  }

  close(): void {
    clearTimeout(this.#kill);
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch {
      // ESRCH: the group is gone already.
    }
  }
}
