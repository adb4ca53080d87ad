/** The thread of {@link loopProbe}. */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import type { WatchedLoop } from './loop-watchdog.ts';

const { beats, patienceMs } = workerData as WatchedLoop;
const count = new Int32Array(beats);
const LOOKS = 10;
const STDERR = 2;

let last = -1;
/** Counts checks, not time: a stopped process (SIGSTOP) did not check either. */
let silentLooks = 0;

setInterval(() => {
  const now = Atomics.load(count, 0);
  silentLooks = now === last ? silentLooks + 1 : 0;
  last = now;
  if (silentLooks > LOOKS) {
    const fatal = { level: 60, time: Date.now(), msg: `the event loop stood still for ${patienceMs} ms` };
    writeSync(STDERR, `${JSON.stringify(fatal)}\n`);
    // It can no longer end in order; ffmpeg and the embedded Redis end with their parent.
    process.kill(process.pid, 'SIGKILL');
  }
}, patienceMs / LOOKS);
