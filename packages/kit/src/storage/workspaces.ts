/**
 * Folders for temporary files, one for each piece of work, gone when it has ended in whatever way. A process has a folder of its
 * own for them, named after it, so that what a killed process left can be told from what a living one uses.
 */
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { hostOf, isOfDeadProcess, nameOfThisProcess } from 'soundpost-base/process-home';

/** Of no job do the steps last so long together; an owner's folder is as young as the last job that began in it. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;

export class Workspaces {
  /** Of this process; it may not be there yet. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Makes the folder of this process under `root` and removes those of processes of this host that are no more, and those of other hosts
   * in which no job has begun for a day: a container that was killed and replaced has no successor of its name.
   * @param clearing is called with the path of each of those before it is removed
   */
  static async open(
    root: string,
    clearing: (folder: string) => Promise<void> = async () => undefined,
  ): Promise<Workspaces> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    for (const name of await readdir(root)) {
      if ((await isOfDeadProcess(name)) || (await isAbandoned(join(root, name), name))) {
        await clearing(join(root, name));
        await rm(join(root, name), { recursive: true, force: true });
      }
    }
    return new Workspaces(join(root, await nameOfThisProcess()));
  }

  /** @param name begins the folder's name, for whoever looks at the disk */
  async use<Result>(name: string, work: (folder: string) => Promise<Result>): Promise<Result> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(join(this.folder, `${name}-`));
    try {
      return await work(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Removes the folder of this process. */
  async close(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Never of this host, whose processes tell for themselves; nor what has no owner's name. */
async function isAbandoned(folder: string, name: string): Promise<boolean> {
  const owner = hostOf(name);
  if (owner === undefined || owner === hostname()) return false;
  const found = await stat(folder).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS;
}
