/**
 * Folders for temporary files, one for each job or send, removed however it ends. All of a process lie in a folder that is named
 * after it, which tells what a killed process left from what a living one uses.
 */
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { hostOf, isOfDeadProcess, nameOfThisProcess } from 'soundpost-base/process-home';

/** No job or send lasts as long. A process's folder is as young as the last one that began or ended in it. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;

type Clearing = (folder: string) => Promise<void>;

export class Workspaces {
  /** Of this process; it may not be there yet. */
  readonly folder: string;
  readonly #root: string;
  readonly #clearing: Clearing;

  private constructor(root: string, name: string, clearing: Clearing) {
    this.folder = join(root, name);
    this.#root = root;
    this.#clearing = clearing;
  }

  /**
   * Sweeps, too.
   * @param clearing is called with the path of each folder that a sweep removes, before it does
   */
  static async open(root: string, clearing: Clearing = async () => undefined): Promise<Workspaces> {
    const workspaces = new Workspaces(root, await nameOfThisProcess(), clearing);
    await workspaces.sweep();
    return workspaces;
  }

  /**
   * Removes the folders of dead processes of this host, and those of other hosts in which nothing has begun for a day: a container that
   * was killed and replaced has no successor of its name.
   */
  async sweep(): Promise<void> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#root)) {
      const folder = join(this.#root, name);
      if ((await isOfDeadProcess(name)) || (await isAbandoned(folder, name))) {
        await this.#clearing(folder);
        await rm(folder, { recursive: true, force: true });
      }
    }
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
