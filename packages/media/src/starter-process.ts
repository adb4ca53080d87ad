/**
 * Starts tools for its parent as start.c does, where that is not built: a fork of a small process
 * that has nothing else to do. It ends with its parent, tools first.
 */
import { constants } from 'node:os';
import {
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
import { SIGNALS, spawnTool, type ToolProcess } from './tool-process.ts';

const runs = new Map<number, ToolProcess>();
let filter: Buffer | undefined;

function send(kind: number, number: number, bytes: Buffer | number): void {
  process.stdout.write(frame(kind, number, bytes));
}

function endAll(): void {
  for (const run of runs.values()) run.signal('SIGKILL');
  process.exit();
}

/** Limits and what a tool sees are set by prefixes of the command here. */
async function start(number: number, words: readonly string[]): Promise<void> {
  const argv = words.flatMap((word) => (word.startsWith('arg ') ? [word.slice('arg '.length)] : []));
  const command = {
    argv,
    filter: words.includes('seccomp') ? filter : undefined,
    ...{ limits: undefined, sees: undefined },
  };
  try {
    const run = spawnTool(command, {
      onStart: (pid) => send(STARTED, number, pid),
      onStdout: (bytes) => send(STDOUT, number, bytes),
      onStderr: (bytes) => send(STDERR, number, bytes),
      onProgress: (bytes) => send(PROGRESS, number, bytes),
    });
    runs.set(number, run);
    const { code, signal } = await run.ended;
    send(ENDED, number, signal === null ? (code ?? 0) << 8 : constants.signals[signal]);
  } catch (error) {
    send(STDERR, number, Buffer.from(`soundpost-start: failed to execute ${argv[0]}: ${error}\n`));
    send(ENDED, number, 1 << 8);
  } finally {
    runs.delete(number);
  }
}

const take = frameReader((kind, number, bytes) => {
  if (kind === FILTER) filter = bytes;
  else if (kind === RUN) void start(number, bytes.toString().split('\0'));
  else if (kind === SIGNAL) {
    const signal = SIGNALS.get(bytes.readUInt32LE());
    if (signal !== undefined) runs.get(number)?.signal(signal);
  }
});

process.stdin.on('data', take).on('end', endAll).on('error', endAll);
process.stdout.on('error', endAll);
