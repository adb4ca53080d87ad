/**
 * Ends this process when its event loop hangs: it then answers no request and renews no lock. The
 * starter measures the silence, or without one a thread, which takes 14 MiB.
 */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Logger } from 'soundpost-base/logger';
import type { Probe } from 'soundpost-kit/observe/probes';
import { beat } from 'soundpost-media/starter';

/** Data for the thread. */
export interface WatchedLoop {
  /** A 32-bit integer that the loop increments. */
  readonly beats: SharedArrayBuffer;
  readonly patienceMs: number;
}

const BEATS_IN_PATIENCE = 10;
/** TypeScript in a checkout, JavaScript in the package, like this file. */
const THREAD = `./loop-watchdog-thread${extname(import.meta.filename)}`;

/** For the row `loop`: each check is a sign of life, and measures how long the loop stood. */
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
    // Closing may take its time.
    close: () => beat(starterPath, 0),
  };
}

function watchingThread(patienceMs: number, logger: Logger) {
  const beats = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const count = new Int32Array(beats);
  const workerData: WatchedLoop = { beats, patienceMs };
  const thread = new Worker(new URL(THREAD, import.meta.url), {
    workerData,
    // The thread must not load this process's preloaded modules.
    execArgv: [],
  });
  // A process without its watchdog is better than none.
  thread.on('error', (error) => logger.error({ err: error }, 'the event loop watchdog has stopped'));
  thread.unref();
  return {
    say: () => Atomics.add(count, 0, 1),
    close: () => thread.terminate(),
  };
}
