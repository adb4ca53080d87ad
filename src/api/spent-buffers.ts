/**
 * The buffers of a body that streams through lie outside of V8's heap, whose garbage collector hardly sees them: left alone it frees them
 * when 64 MiB have come together, and one upload raises the process's memory by as much (measured: 63 to 78 MiB, whatever
 * the size). A scavenge frees what has been passed on, and is short because so little is alive then.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const SCAVENGE_AFTER_BYTES = 8 * 1024 * 1024;

const scavenge = exposedCollector();
let spentBytes = 0;

/** To be told of every chunk of a body, of whatever request. */
export function noteSpent(sizeBytes: number): void {
  spentBytes += sizeBytes;
  if (spentBytes >= SCAVENGE_AFTER_BYTES) {
    spentBytes = 0;
    scavenge({ type: 'minor' });
  }
}

/** V8 gives its collector to contexts that are made while the flag is set; nobody else gets to see it. */
function exposedCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc');
  try {
    return runInNewContext('gc');
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
