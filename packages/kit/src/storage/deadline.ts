/**
 * A storage that answers in time or fails: a network file system whose server has gone away neither answers nor fails, for minutes,
 * and whoever asked would wait as long.
 */
import type { Readable } from 'node:stream';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import { type InTime, ObjectNotFound, type Storage } from './storage.ts';

/** The storage did not answer in time. What was asked for may still be done later. */
export class StorageLate extends Error {
  override readonly name = 'StorageLate';
  /** As the system says it of a server that does not answer. */
  readonly code = 'ETIMEDOUT';
  constructor(operation: string, ms: number) {
    super(`the storage has not answered "${operation}" within ${ms} ms; see whether its volume hangs`);
  }
}

/** Knows whether the storage answers (storage-watch.ts). */
interface Watch {
  /** Throws StorageUnavailable while it is known not to. */
  demandUp(): void;
  /** Finds out. */
  look(): Promise<boolean>;
}

/**
 * The same storage, but what answers a request (`stat`, `read` until it is open, `remove`, `ping`) throws {@link StorageLate} after `ms`,
 * and StorageUnavailable at once while the storage is known to be away. The bytes themselves take as long as they take; before some are
 * written, the storage has to answer a ping.
 */
export function withDeadline(storage: Storage, ms: number, watch?: Watch): Storage {
  const watched = async <Result>(start: () => Promise<Result>): Promise<Result> => {
    watch?.demandUp();
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof ObjectNotFound)) void watch?.look();
      throw error;
    }
  };
  const ask = <Result>(
    operation: string,
    start: () => Promise<Result>,
    discard?: (late: Result) => void,
  ): Promise<Result> => watched(() => inTime(operation, ms, start(), discard));
  return {
    stat: (key) => ask('stat', () => storage.stat(key)),
    read: (key, range) =>
      ask(
        'read',
        () => storage.read(key, range),
        (late: Readable) => late.destroy(),
      ),
    remove: (key) => ask('remove', () => storage.remove(key)),
    ping: (signal) => ask('ping', () => storage.ping(signal)),
    async write(key, content) {
      await ask('ping', () => storage.ping());
      return watched(() => storage.write(key, content));
    },
    publish: (localPath, key) => watched(() => storage.publish(localPath, key)),
    localCopy: (key, workspace, copying) => watched(() => storage.localCopy(key, workspace, copying)),
  };
}

/** As {@link inTime}, for what is under way already; while the storage is known to be away it is not waited for. */
export function watchedInTime(ms: number, watch: Watch): InTime {
  return async (operation, work) => {
    work.catch(() => undefined);
    watch.demandUp();
    return inTime(operation, ms, work);
  };
}

/**
 * What the work resolves to, when that is within `ms` of this process' own time; else throws {@link StorageLate}. Nothing can call a system call back: the work
 * goes on, and what it comes to in the end is given to `discard`.
 */
export async function inTime<Result>(
  operation: string,
  ms: number,
  work: Promise<Result>,
  discard?: (late: Result) => void,
): Promise<Result> {
  using limit = deadline(ms, { reason: () => new StorageLate(operation, ms) });
  const { signal } = limit;
  if (discard !== undefined) work.then((result) => signal.aborted && discard(result)).catch(() => undefined);
  return await untilAborted(work, signal);
}
