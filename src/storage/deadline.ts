/**
 * A storage that answers in time or fails: a network file system whose server has gone away neither answers nor fails, for minutes,
 * and whoever asked would wait as long.
 */
import type { Readable } from 'node:stream';
import type { Storage } from './storage.ts';

/** The storage did not answer in time. What was asked for may still be done later. */
export class StorageLate extends Error {
  override readonly name = 'StorageLate';
  /** As the system says it of a server that does not answer. */
  readonly code = 'ETIMEDOUT';
  constructor(operation: string, ms: number) {
    super(`the storage has not answered "${operation}" within ${ms} ms; see whether its volume hangs`);
  }
}

/**
 * The same storage, but what answers a request (`stat`, `read` until it is open, `remove`, `ping`) throws {@link StorageLate} after `ms`.
 * The bytes themselves take as long as they take; before some are written, the storage has to answer a ping.
 */
export function withDeadline(storage: Storage, ms: number): Storage {
  return {
    stat: (key) => inTime('stat', ms, storage.stat(key)),
    read: (key, range) => inTime('read', ms, storage.read(key, range), (late: Readable) => late.destroy()),
    remove: (key) => inTime('remove', ms, storage.remove(key)),
    ping: () => inTime('ping', ms, storage.ping()),
    async write(key, content) {
      await inTime('ping', ms, storage.ping());
      return storage.write(key, content);
    },
    publish: (localPath, key) => storage.publish(localPath, key),
    localCopy: (key, workspace, copying) => storage.localCopy(key, workspace, copying),
  };
}

/**
 * What the work resolves to, when that is within `ms`; else throws {@link StorageLate}. Nothing can call a system call back: the work
 * goes on, and what it comes to in the end is given to `discard`.
 */
export async function inTime<Result>(
  operation: string,
  ms: number,
  work: Promise<Result>,
  discard?: (late: Result) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      // Timers come before answers in a turn of the event loop: a process that was busy must not blame the storage.
      setImmediate(() => {
        isLate = true;
        reject(new StorageLate(operation, ms));
      });
    }, ms);
    work.then(
      (result) => {
        clearTimeout(timer);
        if (isLate) discard?.(result);
        else resolve(result);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
