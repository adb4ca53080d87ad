/**
 * Ends this process when its event loop stands still: it answers no request and renews no lock then, and nothing inside the loop
 * could do anything about it. Who counts how long nothing was heard is the starter beside it, or a thread where there is none, which takes 14 MiB.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'soundpost-base/logger';
import type { Probe } from 'soundpost-kit/observe/probes';
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

/** For the row `loop`: asking it is the sign of life, and shows how long the loop stood still. */
export function loopProbe(
  patienceMs: number,
  starterPath: string | undefined,
  logger: Logger,
): Probe<'loop'> {
  const everyMs = patienceMs / BEATS_IN_PATIENCE;
  const { say, close } =
    starterPath === undefined ? watchingThread(patienceMs, logger) : watchingStarter(patienceMs, starterPath);
  let dueMs = Number.POSITIVE_INFINITY;
  let standMs = 0;
  return {
    everyMs,
    ask() {
      const nowMs = performance.now();
      standMs = nowMs - dueMs;
      dueMs = nowMs + everyMs;
      say();
      return standMs > everyMs ? 'stood' : 'turning';
    },
    details: () => ({ seconds: standMs / 1000 }),
    close,
  };
}

function watchingStarter(patienceMs: number, starterPath: string) {
  return {
    say: () => beat(starterPath, patienceMs),
    // What is still to be closed may take its time.
    close: () => beat(starterPath, 0),
  };
}

function watchingThread(patienceMs: number, logger: Logger) {
  const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const count = new Int32Array(beats);
  const workerData: WatchedLoop = { beats, patienceMs };
  const thread = new Worker(new URL(THREAD, import.meta.url), {
    workerData,
    // What was loaded into this process beforehand is not the thread's to load.
    execArgv: [],
  });
  // A process without its watch is still better than none.
  thread.on('error', (error) => logger.error({ err: error }, 'the watch over the event loop has ended'));
  thread.unref();
  return {
    say: () => Atomics.add(count, 0, 1),
    close: () => thread.terminate(),
  };
}
