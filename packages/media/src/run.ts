/**
 * The only place that starts ffmpeg and ffprobe. A run has one owner: it has its own process group,
 * ends for the first reason given, and leaves no process behind.
 */
import { lstat, writeFile } from 'node:fs/promises';
import { deadline } from 'soundpost-base/deadline';
import { type BadEnding, MediaFailure, TOO_MANY_DECODE_ERRORS, ToolFailure } from './failure.ts';
import type { ToolMeter } from './run-meter.ts';
import {
  bubblewrap,
  type FileAccess,
  MEMORY_BYTES,
  prlimit,
  type Sandbox,
  seenByLandlock,
  withoutCapabilities,
} from './sandbox.ts';
import { seccompFilter } from './seccomp.ts';
import { startTool } from './starter.ts';
import { type Progress, progressReader, Tail } from './tool-output.ts';
import {
  PROGRESS_DESCRIPTOR,
  SIGNALS,
  spawnTool,
  type ToolCommand,
  type ToolProcess,
  watchedRun,
} from './tool-process.ts';

type Exit = Awaited<ToolProcess['ended']>;

const SECOND = 1000;

/** ffmpeg ends a run tidily on SIGTERM, but not while it waits in an open(2) or a read(2). */
const TERM_TO_KILL_MS = 2 * SECOND;

/** ffmpeg reports at least every half second; a run that is silent for this long hangs. */
const STALL_MS = 30 * SECOND;

/**
 * Before its last output begins ffmpeg reports nothing: for a clip from the end of a long source,
 * as long as it decodes. The wall limit grows with the source, and this is a part of it.
 */
const SILENT_PART = 1 / 20;

export interface MediaTools {
  /** Absolute: a sandbox shows the system's folders and this file. */
  readonly ffmpegPath: string;
  readonly ffprobePath: string;
  /** The built start.c: starts tools and sets their limits. Level `landlock` needs it. */
  readonly starterPath?: string | undefined;
  /**
   * Without a starter: prefix for both tools, such as `['setpriv', '--pdeathsig', 'KILL', '--']`.
   * It execs or stays the parent, passes descriptors on, and ends the tool with this process.
   */
  readonly launcher: readonly string[];
  /** Without a starter: whether a process of Node starts tools; default false. */
  readonly startsApart?: boolean;
  /** From `detectSandbox`; omitted: none, and no limits. */
  readonly sandbox?: Sandbox;
  /** Called for each run. */
  readonly watch?: Parameters<typeof watchedRun>[0]['watch'];
  readonly meter?: ToolMeter;
  /**
   * Owner of the runs, who does not wait for other owners’ descriptions (reading/reader.ts).
   */
  readonly owner?: string;
}

/** The result of searching for the tools. */
export type FoundTools =
  | {
      readonly tools: Omit<MediaTools, 'sandbox'>;
      /** Our own build (decision 28). */
      readonly isOurs: boolean;
    }
  | {
      readonly tools: undefined;
      /** The missing tools, as a sentence. */
      readonly missing: string;
    };

export interface RunLimits {
  /** Ends the run and rejects with its reason. */
  readonly signal: AbortSignal;
  /** The longest that the run may take in total. */
  readonly wallLimitMs: number;
  /** What a sandbox lets the run reach; default nothing. */
  readonly access?: FileAccess;
  /** Private memory, bytes; default {@link MEMORY_BYTES}. */
  readonly maxMemoryBytes?: number;
  /** Time on processors, seconds; default the wall limit. */
  readonly maxCpuSeconds?: number;
  /** How long each written file may become; default 0, which leaves the pipes. */
  readonly maxFileBytes?: number;
}

interface RunOptions extends RunLimits {
  readonly onProgress?: (progress: Progress) => void;
  /** Takes the tool's standard output; omitted: it is discarded. */
  readonly onStdout?: (chunk: Buffer) => void;
  /** Receives the tool's standard error, besides the part that is kept. */
  readonly onStderr?: (chunk: Buffer) => void;
}

interface RunResult {
  /** The last 256 KiB, with ffmpeg's statistics. For parsing and logs only: it holds paths. */
  readonly stderr: string;
  readonly lastProgress: Progress;
}

/**
 * Runs ffmpeg with arguments from `composeArguments`.
 * @throws {ToolFailure} unless it exits with code 0 and whole outputs; the signal's reason when it
 * was aborted; another error when it could not be started.
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
  return watchedRun(tools, 'ffmpeg', options.signal, async (onStart) => {
    const result = await supervise('ffmpeg', tools, command, { ...options, onStart }, STALL_MS);
    if (UNFINISHED.test(result.stderr))
      throw new ToolFailure('ffmpeg', { kind: 'exit', code: 0 }, result.stderr);
    if (isMostlyUndecodable(result.stderr))
      throw new ToolFailure('ffmpeg', { kind: 'exit', code: TOO_MANY_DECODE_ERRORS }, result.stderr);
    return result;
  });
}

/** ffmpeg 7 divides whole numbers for its rate of errors: less than all of them counts as none. */
function isMostlyUndecodable(stderr: string): boolean {
  const streams = stderr.matchAll(
    /Input stream #\d+:\d+ \(audio\): .* (\d+) frames decoded; (\d+) decode errors/g,
  );
  return Array.from(streams).some(([, frames, errors]) => Number(errors) > 2 * Number(frames));
}

/** If the disk is full when a small file is flushed at its end, ffmpeg says so but exits with 0. */
const UNFINISHED = /^Error (writing trailer of|closing file) /m;

interface FfprobeOptions extends RunLimits {
  readonly maxStdoutBytes: number;
  /** Of its standard output; default UTF-8. */
  readonly encoding?: 'latin1';
}

/** Runs ffprobe and returns its standard output. Rejects as {@link runFfmpeg} does. */
export async function runFfprobe(
  tools: MediaTools,
  args: readonly string[],
  options: FfprobeOptions,
): Promise<RunResult & { stdout: string }> {
  const chunks: Buffer[] = [];
  const limits = ['-max_alloc', '268435456', '-hide_banner'];
  const command = confined(tools, tools.ffprobePath, [...limits, ...args], options);
  const result = await watchedRun(tools, 'ffprobe', options.signal, (onStart) =>
    supervise(
      'ffprobe',
      tools,
      command,
      { ...options, onStart, onStdout: (chunk) => chunks.push(chunk) },
      undefined,
      options.maxStdoutBytes,
    ),
  );
  return { ...result, stdout: Buffer.concat(chunks).toString(options.encoding) };
}

const NO_FILES: FileAccess = { reads: [], writes: [] };

/** The tool, with prefixes that tie it to this process and confine it. */
function confined(
  { launcher, sandbox, starterPath }: MediaTools,
  tool: string,
  args: readonly string[],
  options: RunLimits,
): ToolCommand {
  const { access = NO_FILES, wallLimitMs } = options;
  const { level = 'none', hasLimits = false, showsSystem = true } = sandbox ?? {};
  const limits = !hasLimits
    ? undefined
    : {
        memoryBytes: options.maxMemoryBytes ?? MEMORY_BYTES,
        cpuSeconds: options.maxCpuSeconds ?? wallLimitMs / SECOND,
        fileBytes: options.maxFileBytes ?? 0,
      };
  const prefixes =
    starterPath === undefined ? [...launcher, ...(limits === undefined ? [] : prlimit(limits))] : [];
  const walls = level === 'bubblewrap' ? bubblewrap(tool, access, showsSystem) : [];
  const drop = starterPath === undefined && level === 'none' ? withoutCapabilities(launcher) : [];
  return {
    argv: [...drop, ...prefixes, ...walls, tool, ...args],
    filter: level === 'none' ? undefined : seccompFilter(),
    limits,
    sees: level === 'landlock' ? seenByLandlock(access, showsSystem) : undefined,
  };
}

/**
 * A FIFO or device would hang the tool for ever, and a symbolic link could lead anywhere.
 * @throws {MediaFailure} INVALID_VIDEO unless the path is a regular file.
 */
export async function requireRegularFile(path: string): Promise<{ sizeBytes: number }> {
  const stats = await lstat(path);
  if (!stats.isFile()) throw new MediaFailure('INVALID_VIDEO', 'not a regular file');
  return { sizeBytes: stats.size };
}

async function supervise(
  tool: string,
  { starterPath, startsApart = false }: MediaTools,
  command: ToolCommand,
  options: RunOptions & { readonly onStart: (pid: number) => void },
  stallMs: number | undefined,
  maxStdoutBytes = Number.POSITIVE_INFINITY,
): Promise<RunResult> {
  // A sandbox can show only files that exist.
  for (const file of options.access?.writes ?? []) await writeFile(file, '', { flag: 'a', mode: 0o600 });
  options.signal.throwIfAborted();

  let silentMs = (stallMs ?? 0) + options.wallLimitMs * SILENT_PART;
  using stall = stallMs === undefined ? undefined : deadline(silentMs);
  stall?.signal.addEventListener('abort', () => reaper.end({ kind: 'stalled', afterMs: silentMs }));
  let lastProgress: Progress = { outSeconds: undefined };
  let stdoutBytes = 0;
  const stderr = new Tail();
  const listeners = {
    onStart: options.onStart,
    onStderr: (bytes: Buffer) => {
      stderr.add(bytes);
      options.onStderr?.(bytes);
    },
    onProgress: progressReader((progress) => {
      silentMs = stallMs ?? silentMs;
      stall?.renew(silentMs);
      lastProgress = progress;
      options.onProgress?.(progress);
    }),
    onStdout: (bytes: Buffer) => {
      stdoutBytes += bytes.length;
      if (stdoutBytes > maxStdoutBytes) reaper.end({ kind: 'too-much-output', limitBytes: maxStdoutBytes });
      else options.onStdout?.(bytes);
    },
  };
  const process =
    starterPath === undefined && !startsApart
      ? spawnTool(command, listeners)
      : startTool(starterPath, command, listeners);
  const reaper = new Reaper(process);

  using limit = deadline(options.wallLimitMs, { signal: options.signal });
  limit.signal.addEventListener('abort', () => {
    const isAborted = limit.signal.reason === options.signal.reason;
    reaper.end(isAborted ? 'aborted' : { kind: 'wall-limit', afterMs: options.wallLimitMs });
  });
  try {
    const exit = await process.ended;
    if (reaper.reason === 'aborted') throw options.signal.reason;
    const ending = reaper.reason ?? badEnding(exit);
    if (ending !== undefined) {
      throw NOT_STARTED.test(stderr.text) ? notStarted(tool) : new ToolFailure(tool, ending, stderr.text);
    }
    return { stderr: stderr.text, lastProgress };
  } finally {
    reaper.close();
  }
}

/** What launchers report of a missing program; the tools' own names never begin such a line. */
const NOT_STARTED =
  /^(prlimit|setpriv|soundpost-start|env|bwrap|\/bin\/sh|sh): .*(failed to execute|execvp|not found)/m;

/** The same error as without a launcher: a missing tool must not look like a faulty file. */
function notStarted(tool: string): Error {
  return Object.assign(new Error(`${tool} could not be started`), { code: 'ENOENT' });
}

function badEnding({ code, signal }: Exit): BadEnding | undefined {
  // A launcher that stays the parent exits with 128 plus the tool's signal (POSIX 2.8.2).
  const ended = signal ?? SIGNALS.get((code ?? 0) - 128);
  if (ended !== undefined) return { kind: 'signal', signal: ended };
  return code === 0 || code === null ? undefined : { kind: 'exit', code };
}

/** Ends a process group once, for the first reason given: SIGTERM, then SIGKILL. */
class Reaper {
  reason: BadEnding | 'aborted' | undefined;
  readonly #process: ToolProcess;
  #kill: NodeJS.Timeout | undefined;

  constructor(process: ToolProcess) {
    this.#process = process;
  }

  end(reason: BadEnding | 'aborted'): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.#process.signal('SIGTERM');
    this.#kill = setTimeout(() => this.#process.signal('SIGKILL'), TERM_TO_KILL_MS);
  }

  close(): void {
    clearTimeout(this.#kill);
  }
}
