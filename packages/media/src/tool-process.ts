/** A process of ffmpeg or ffprobe, started by Node if there is no starter (starter.ts). */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { RunMeter, type ToolMeter } from './run-meter.ts';
import { FILTER_DESCRIPTOR, type prlimit } from './sandbox.ts';

/** Not 3: a launcher may keep its lifeline to this process there. */
export const PROGRESS_DESCRIPTOR = 4;

/** Keeps FFREPORT, AV_LOG_* and proxies from ffmpeg; tools elsewhere have an absolute path. */
export const TOOL_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
};

/** By their numbers. */
export const SIGNALS = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name as NodeJS.Signals]),
);

export interface ToolCommand {
  /** The tool after its prefixes, with its arguments. */
  readonly argv: readonly string[];
  /** Which system calls it may make; undefined: all. */
  readonly filter: Buffer | undefined;
  /** Set by the starter; without it by a prefix. */
  readonly limits: Parameters<typeof prlimit>[0] | undefined;
  /** Files that it sees, for the starter's Landlock; undefined: a prefix confines it, or none. */
  readonly sees: { readonly reads: readonly string[]; readonly writes: readonly string[] } | undefined;
}

/** Called with the tool's output in chunks. */
interface Listeners {
  /** With the id of the tool's process group, once it runs. */
  readonly onStart: (pid: number) => void;
  readonly onStdout: (bytes: Buffer) => void;
  readonly onStderr: (bytes: Buffer) => void;
  readonly onProgress: (bytes: Buffer) => void;
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ToolProcess {
  /** Resolves after all output. Rejects if it could not be started. */
  readonly ended: Promise<Exit>;
  /** Signals the tool's process group; does nothing after it has ended. */
  signal(signal: NodeJS.Signals): void;
}

/** By a fork of this process. Limits have to be part of the command. */
export function spawnTool({ argv, filter }: ToolCommand, listeners: Listeners): ToolProcess {
  const [file = '', ...args] = argv;
  const child = spawn(file, args, {
    // A process group of its own, so that one signal reaches the launcher and all that it started.
    detached: true,
    // Standard input stays empty: launchers watch it, and end with this process when it closes.
    stdio: ['pipe', 'pipe', 'pipe', 'ignore', 'pipe', ...(filter === undefined ? [] : ['pipe' as const])],
    env: TOOL_ENVIRONMENT,
  });
  // A sandbox that did not start reads nothing; its exit shows that.
  const writer = child.stdio.at(FILTER_DESCRIPTOR) as Writable | null | undefined;
  writer?.on('error', () => undefined).end(filter);
  child.stdout?.on('data', listeners.onStdout);
  child.stderr?.on('data', listeners.onStderr);
  (child.stdio[PROGRESS_DESCRIPTOR] as Readable).on('data', listeners.onProgress);
  const { promise: ended, resolve, reject } = Promise.withResolvers<Exit>();
  child.once('error', reject);
  // The rest of its group ends with it, before the id can be reused.
  child.once('exit', () => signalGroup(child, 'SIGKILL'));
  child.once('close', (code, signal) => resolve({ code, signal }));
  if (child.pid !== undefined) listeners.onStart(child.pid);
  return { ended, signal: (signal) => signalGroup(child, signal) };
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: the group is gone already.
  }
}

// Reports that a tool runs, how it ended, and what it used.

type Tool = 'ffmpeg' | 'ffprobe';

/** @returns called once at the end. `processorSeconds`: ffmpeg's own, else {@link RunMeter}'s */
type RunWatch = (
  tool: Tool,
) => (ending: 'completed' | 'failed' | 'aborted', processorSeconds: number) => void;

/** What ffmpeg says at its end with `-benchmark`. */
const USED = /^bench: utime=([\d.]+)s stime=([\d.]+)s/m;

interface Watchers {
  /** Called for each run. */
  readonly watch?: RunWatch;
  readonly meter?: ToolMeter;
}

export async function watchedRun<Result extends { readonly stderr: string }>(
  { watch, meter }: Watchers,
  tool: Tool,
  signal: AbortSignal,
  run: (onStart: (pid: number) => void) => Promise<Result>,
): Promise<Result> {
  const tell = watch?.(tool);
  const use = new RunMeter(meter);
  try {
    const result = await run((pid) => use.follow(pid));
    const [, user, system] = USED.exec(result.stderr) ?? [];
    const seconds = use.end(user === undefined ? undefined : Number(user) + Number(system));
    tell?.('completed', seconds);
    return result;
  } catch (error) {
    const seconds = use.end();
    tell?.(signal.aborted ? 'aborted' : 'failed', seconds);
    throw error;
  }
}
