/**
 * Starts tools by a small program, one per Node process. A fork of Node itself blocks its only
 * thread twice a job: for 5 ms, plus 4.5 ms per 100 MiB of memory, and 30 ms on busy cores. The
 * program is start.c, or starter-process.ts where that is not built.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, extname } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { findProgram } from 'soundpost-base/launcher';
import { limitRows } from './sandbox.ts';
import {
  BEAT,
  ENDED,
  FILTER,
  frame,
  frameReader,
  PROGRESS,
  RUN,
  SIGNAL,
  STARTED,
  STDERR,
  STDOUT,
} from './starter-frames.ts';
import {
  SIGNALS,
  type spawnTool,
  TOOL_ENVIRONMENT,
  type ToolCommand,
  type ToolProcess,
} from './tool-process.ts';

type Exit = Awaited<ToolProcess['ended']>;

type Listeners = Parameters<typeof spawnTool>[1];

/** TypeScript in a checkout, JavaScript in the package, like this file. */
const PROGRAM = fileURLToPath(new URL(`./starter-process${extname(import.meta.filename)}`, import.meta.url));

const starters = new Map<string, Starter>();

/** @param path the built start.c; undefined: by Node */
export function startTool(path: string | undefined, command: ToolCommand, listeners: Listeners): ToolProcess {
  return starterAt(path).run(command, listeners);
}

/** Has this process killed if it is not called again within so many whole milliseconds. */
export function beat(path: string, patienceMs: number): void {
  starterAt(path).beat(patienceMs);
}

function starterAt(path = PROGRAM): Starter {
  const starter = starters.get(path) ?? new Starter(path, () => starters.delete(path));
  starters.set(path, starter);
  return starter;
}

interface Run extends Listeners {
  readonly onEnd: (exit: Exit) => void;
  readonly onError: (error: Error) => void;
}

class Starter {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #runs = new Map<number, Run>();
  #last = 0;
  #filter: Buffer | undefined;

  /** @param onGone called when it takes no more runs; those that it had have ended */
  constructor(path: string, onGone: () => void) {
    const [program, ...words] = path === PROGRAM ? [process.execPath, path] : [path];
    this.#child = spawn(program, words, {
      // A terminal's signals should reach only this process, which ends its tools in order.
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: TOOL_ENVIRONMENT,
    });
    const { stdin, stdout } = this.#child;
    stdout.on(
      'data',
      frameReader((kind, number, bytes) => this.#receive(kind, number, bytes)),
    );
    // `close` reports what ended it.
    stdin.on('error', () => undefined);
    this.#child.once('error', (error) => this.#gone(onGone, (run) => run.onError(error)));
    this.#child.once('close', () =>
      this.#gone(onGone, (run) => run.onEnd({ code: null, signal: 'SIGKILL' })),
    );
    // Does not keep an idle process alive; a run has timers.
    this.#child.unref();
    for (const pipe of [stdin, stdout]) (pipe as Partial<{ unref(): void }>).unref?.();
  }

  run({ argv, filter, limits, sees }: ToolCommand, listeners: Listeners): ToolProcess {
    this.#last += 1;
    const number = this.#last;
    const { promise: ended, resolve, reject } = Promise.withResolvers<Exit>();
    this.#runs.set(number, { ...listeners, onEnd: resolve, onError: reject });
    if (filter !== undefined && this.#filter !== filter) this.#send(FILTER, 0, filter);
    this.#filter = filter ?? this.#filter;
    const words = [
      // In this order: limits apply to later steps, and one of them may forbid writing files.
      ...(sees === undefined ? (filter === undefined ? [] : ['seccomp']) : ['landlock']),
      ...(sees?.reads ?? []).map((path) => `read ${path}`),
      ...(sees?.writes ?? []).map((path) => `write ${path}`),
      ...(limits === undefined ? [] : limitRows(limits)).map((row) => `limit ${row.join(' ')}`),
      ...argv.map((word) => `arg ${word}`),
    ];
    this.#send(RUN, number, Buffer.from(`${words.join('\0')}\0`));
    return { ended, signal: (signal) => this.#signal(number, signal) };
  }

  beat(patienceMs: number): void {
    this.#send(BEAT, 0, patienceMs);
  }

  #signal(number: number, signal: NodeJS.Signals): void {
    if (!this.#runs.has(number)) return;
    this.#send(SIGNAL, number, constants.signals[signal]);
  }

  #send(kind: number, number: number, bytes: Buffer | number): void {
    this.#child.stdin.write(frame(kind, number, bytes));
  }

  #receive(kind: number, number: number, bytes: Buffer): void {
    const run = this.#runs.get(number);
    if (run === undefined) return;
    if (kind === STDOUT) run.onStdout(bytes);
    else if (kind === STDERR) run.onStderr(bytes);
    else if (kind === PROGRESS) run.onProgress(bytes);
    else if (kind === STARTED) run.onStart(bytes.readUInt32LE(0));
    else if (kind === ENDED) {
      this.#runs.delete(number);
      run.onEnd(exitOf(bytes.readUInt32LE(0)));
    }
  }

  #gone(onGone: () => void, tell: (run: Run) => void): void {
    onGone();
    for (const run of this.#runs.values()) tell(run);
    this.#runs.clear();
  }
}

/** A status of wait(2): the signal in the lower seven bits, or the exit code in the next eight. */
function exitOf(status: number): Exit {
  const signal = SIGNALS.get(status & 0x7f) ?? null;
  return { code: signal === null ? (status >> 8) & 0xff : null, signal };
}

/** The built program that starts tools (decision 35). @param builtFolder see {@link findTools} */
export function findStarter(searchPath: string, builtFolder?: string): string | undefined {
  const folders = builtFolder === undefined ? [searchPath] : [builtFolder, searchPath];
  return findProgram('soundpost-start', folders.join(delimiter));
}
