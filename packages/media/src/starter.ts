/**
 * Starts tools by a small program (start.c), one per Node process. A fork of Node itself would
 * block its only thread for 5 ms, plus 4.5 ms per 100 MiB of memory, twice a job.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { findProgram } from 'soundpost-base/launcher';
import { limitRows } from './sandbox.ts';
import {
  SIGNALS,
  type spawnTool,
  TOOL_ENVIRONMENT,
  type ToolCommand,
  type ToolProcess,
} from './tool-process.ts';

type Exit = Awaited<ToolProcess['ended']>;

type Listeners = Parameters<typeof spawnTool>[1];

/** Kinds of frames, as start.c has them. */
const RUN = 1;
const SIGNAL = 2;
const FILTER = 3;
const BEAT = 4;
const STDOUT = 5;
const STDERR = 6;
const PROGRESS = 7;
const ENDED = 8;
const STARTED = 9;

/** Length of the message, kind, number of the run. */
const HEADER_BYTES = 12;

const starters = new Map<string, Starter>();

/** @param path the built start.c */
export function startTool(path: string, command: ToolCommand, listeners: Listeners): ToolProcess {
  return starterAt(path).run(command, listeners);
}

/** Has this process killed if it is not called again within so many whole milliseconds. */
export function beat(path: string, patienceMs: number): void {
  starterAt(path).beat(patienceMs);
}

function starterAt(path: string): Starter {
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
  #rest: Buffer = Buffer.alloc(0);

  /** @param onGone called when it takes no more runs; those that it had have ended */
  constructor(path: string, onGone: () => void) {
    this.#child = spawn(path, [], {
      // A terminal's signals should reach only this process, which ends its tools in order.
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: TOOL_ENVIRONMENT,
    });
    const { stdin, stdout } = this.#child;
    stdout.on('data', (bytes: Buffer) => this.#receive(bytes));
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
    this.#send(BEAT, 0, number32(patienceMs));
  }

  #signal(number: number, signal: NodeJS.Signals): void {
    if (!this.#runs.has(number)) return;
    this.#send(SIGNAL, number, number32(constants.signals[signal]));
  }

  #send(kind: number, number: number, bytes: Buffer): void {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32LE(bytes.length, 0);
    header.writeUInt32LE(kind, 4);
    header.writeUInt32LE(number, 8);
    this.#child.stdin.write(Buffer.concat([header, bytes]));
  }

  #receive(bytes: Buffer): void {
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (rest.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + rest.readUInt32LE(0);
      if (rest.length < end) break;
      const run = this.#runs.get(rest.readUInt32LE(8));
      if (run !== undefined)
        this.#tell(run, rest.readUInt32LE(4), rest.readUInt32LE(8), rest.subarray(HEADER_BYTES, end));
      rest = rest.subarray(end);
    }
    this.#rest = rest;
  }

  #tell(run: Run, kind: number, number: number, bytes: Buffer): void {
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

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
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
