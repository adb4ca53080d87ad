/** A volume of a few MiB, which fills up as a real one does. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, rmdir, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
export const MIB = 1024 * 1024;

export interface SmallVolume {
  readonly folder: string;
  freeBytes(): Promise<number>;
  /** Lets something else, which is none of the service's business, take all but so much. */
  fillUpTo(freeBytes: number): Promise<void>;
  /** Takes that away again. */
  empty(): Promise<void>;
  remove(): Promise<void>;
}

/** @param folder where it is mounted, an empty folder; default a new one */
export async function makeSmallVolume(sizeBytes: number, folder?: string): Promise<SmallVolume> {
  const place = folder ?? (await mkdtemp(join(tmpdir(), 'soundpost-volume-')));
  const ballast = join(place, '.ballast');
  await execute('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes},mode=0700`, 'tmpfs', place]).catch(
    (error: Error) => {
      throw new Error(
        `no volume could be mounted, which takes root and a container that permits it (docker: --privileged): ${error.message}`,
      );
    },
  );
  const freeBytes = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(place);
    return bavail * bsize;
  };
  return {
    folder: place,
    freeBytes,
    async fillUpTo(bytes) {
      await rm(ballast, { force: true });
      await writeFile(ballast, Buffer.alloc(Math.max(0, (await freeBytes()) - bytes)));
    },
    empty: () => rm(ballast, { force: true }),
    async remove() {
      // Lazily: a process that a test has just killed may still be about to let a file go.
      await execute('umount', ['--lazy', place]);
      if (folder === undefined) await rmdir(place);
    },
  };
}
