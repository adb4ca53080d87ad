/**
 * Ends this process when its event loop stands still: it answers no request and renews no lock then, and nothing inside the loop
 * could do anything about it. A thread of its own counts how long it has heard nothing.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../observe/logger.ts';

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
export function watchLoop(patienceMs: number, logger: Logger): () => Promise<void> {
  const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const count = new Int32Array(beats);
  const beat = setInterval(() => Atomics.add(count, 0, 1), patienceMs / BEATS_IN_PATIENCE).unref();
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
    clearInterval(beat);
    await thread.terminate();
  };
}
