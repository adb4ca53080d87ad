/**
 * A storage that answers in time or fails. Without this, a network file system without its server
 * can hang for minutes.
 */
import type { Readable } from 'node:stream';
import { deadline, untilAborted } from 'soundpost-base/deadline';
import { type InTime, ObjectNotFound, type Storage } from './storage.ts';

/** The storage did not answer in time. The operation may still complete later. */
export class StorageLate extends Error {
  override readonly name = 'StorageLate';
  /** The system's code for a server that does not answer. */
  readonly code = 'ETIMEDOUT';
  constructor(operation: string, ms: number) {
    super(`the storage has not answered "${operation}" within ${ms} ms; see whether its volume hangs`);
  }
}

/** Knows whether the storage answers (storage-watch.ts). */
interface Watch {
  /** Throws StorageUnavailable while the storage is down. */
  demandUp(): void;
  /** Checks now. */
  look(): Promise<boolean>;
}

/**
 * Limits `stat`, opening `read`, `remove` and `ping`: they throw {@link StorageLate} after `ms`,
 * and StorageUnavailable at once while the storage is down. The bytes themselves have no limit;
 * before a write, the storage must answer a ping.
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

/** Like {@link inTime}, for work that has begun; while the storage is down it throws at once. */
export function watchedInTime(ms: number, watch: Watch): InTime {
  return async (operation, work) => {
    work.catch(() => undefined);
    watch.demandUp();
    return inTime(operation, ms, work);
  };
}

/**
 * The work's result within `ms` of this process's own time; else throws {@link StorageLate}. System
 * calls cannot be cancelled: the work continues, and `discard` gets a late result.
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
