/**
 * Temporary folders, one per job or send, removed however it ends. Those of a process are in a
 * folder named after it, which shows whether its owner still lives.
 */
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { hostOf, isOfDeadProcess, nameOfThisProcess } from 'soundpost-base/process-home';

/** No job or send lasts as long. Each begin or end in a process's folder renews its age. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;

type Clearing = (folder: string) => Promise<void>;

export class Workspaces {
  /** The folder of this process; it may not exist yet. */
  readonly folder: string;
  readonly #root: string;
  readonly #clearing: Clearing;

  private constructor(root: string, name: string, clearing: Clearing) {
    this.folder = join(root, name);
    this.#root = root;
    this.#clearing = clearing;
  }

  /** @param clearing called with the path of each folder before a sweep removes it */
  static async open(root: string, clearing: Clearing = async () => undefined): Promise<Workspaces> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    return new Workspaces(root, await nameOfThisProcess(), clearing);
  }

  /**
   * Removes folders of this host's dead processes, and other hosts' folders without use for a day:
   * a replaced container has no successor with its name.
   */
  async sweep(): Promise<void> {
    for (const name of await readdir(this.#root)) {
      const folder = join(this.#root, name);
      if ((await isOfDeadProcess(name)) || (await isAbandoned(folder, name))) {
        await this.#clearing(folder);
        await rm(folder, { recursive: true, force: true });
      }
    }
  }

  /** @param name prefix of the folder's name, for people who look at the disk */
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

/** Never for this host, whose processes can be checked, nor for folders without an owner's name. */
async function isAbandoned(folder: string, name: string): Promise<boolean> {
  const owner = hostOf(name);
  if (owner === undefined || owner === hostname()) return false;
  const found = await stat(folder).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS;
}
