/**
 * Ends this process when its event loop stands still: it answers no request and renews no lock then, and nothing inside the loop
 * could do anything about it. Who counts how long nothing was heard is the starter beside it, or a thread where there is none, which takes 14 MiB.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'soundpost-base/logger';
import { beat } from 'soundpost-media/starter';

/** What the thread is given. */
export interface WatchedLoop {
  /** One 32-bit integer, which the loop adds to. */
  readonly beats: SharedArrayBuffer;
  readonly patienceMs: number;
}

const BEATS_IN_PATIENCE = 10;
/** TypeScript in a checkout, JavaScript in the package: as this file. */
const THREAD = `./loop-watchdog-thread${extname(import.meta.filename)}`;

/** @returns ends the watch */
export function watchLoop(
  patienceMs: number,
  starterPath: string | undefined,
  logger: Logger,
): () => Promise<void> {
  return starterPath === undefined
    ? watchByThread(patienceMs, logger)
    : watchByStarter(patienceMs, starterPath);
}

function watchByStarter(patienceMs: number, starterPath: string): () => Promise<void> {
  const say = (): void => beat(starterPath, patienceMs);
  // At once: the starter does not look before it has heard of it.
  say();
  const timer = setInterval(say, patienceMs / BEATS_IN_PATIENCE).unref();
  return async () => {
    clearInterval(timer);
    // What is still to be closed may take its time.
    beat(starterPath, 0);
  };
}

function watchByThread(patienceMs: number, logger: Logger): () => Promise<void> {
  const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const count = new Int32Array(beats);
  const timer = setInterval(() => Atomics.add(count, 0, 1), patienceMs / BEATS_IN_PATIENCE).unref();
  const workerData: WatchedLoop = { beats, patienceMs };
  const thread = new Worker(new URL(THREAD, import.meta.url), {
    workerData,
    // What was loaded into this process beforehand is not the thread's to load.
    execArgv: [],
  });
  // A process without its watch is still better than none.
  thread.on('error', (error) => logger.error({ err: error }, 'the watch over the event loop has ended'));
  thread.unref();
  return async () => {
    clearInterval(timer);
    await thread.terminate();
  };
}
