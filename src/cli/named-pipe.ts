/**
 * Pipes with a name, by the event loop. A thread that waits in an open, a read or a write for the other end could not be interrupted, and
 * process.exit would wait for it.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** How often is looked whether somebody reads: no event tells of it. */
const LOOK_MS = 100;

/** Its bytes, once somebody writes, to the end of what is written. */
export function readPipe(path: string): Readable {
  return socketOf(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), 'readable');
}

/** Waits for somebody who reads. Throws the signal's reason, or what the file system says. */
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
