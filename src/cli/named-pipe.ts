/**
 * Named pipes on the event loop. A thread blocked in open, read or write could not be interrupted,
 * and process.exit would wait for it.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** How often to check for a reader: no event reports one. */
const LOOK_MS = 100;

/** Its bytes, from the first writer to the end. */
export function readPipe(path: string): Readable {
  return socketOf(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), 'readable');
}

/** Waits for a reader. Throws the signal's reason, or the file system's error. */
export async function writePipe(path: string, signal: AbortSignal): Promise<Writable> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return socketOf(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK), 'writable');
    } catch (error) {
      const nobodyReads = error instanceof Error && 'code' in error && error.code === 'ENXIO';
      if (!nobodyReads) throw error;
    }
    await delay(LOOK_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}

function socketOf(fd: number, direction: 'readable' | 'writable'): Socket {
  try {
    return new Socket({ fd, readable: false, writable: false, [direction]: true });
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
