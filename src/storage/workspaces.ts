/**
 * Folders for temporary files, one for each piece of work, gone when it has ended in whatever way. A process has a folder of its
 * own for them, named after it, so that what a killed process left can be told from what a living one uses.
 */
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** `<host>.<pid>.<start>`: pids are used again, so the time at which the process was started belongs to its name. */
const OWNER_FORM = /^(.+)\.(\d+)\.(\d+)$/;

export class Workspaces {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Makes the folder of this process under `root` and removes those of processes of this host that are no more.
   * @param clearing is called with the path of each of those before it is removed
   */
  static async open(
    root: string,
    clearing: (folder: string) => Promise<void> = async () => undefined,
  ): Promise<Workspaces> {
    await mkdir(root, { recursive: true, mode: 0o700 });
    for (const name of await readdir(root)) {
      if (await isOfDeadProcess(name)) {
        await clearing(join(root, name));
        await rm(join(root, name), { recursive: true, force: true });
      }
    }
    return new Workspaces(join(root, await nameOfThisProcess()));
  }

  /** @param name begins the folder's name, for whoever looks at the disk */
  async use<Result>(name: string, work: (folder: string) => Promise<Result>): Promise<Result> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(join(this.#folder, `${name}-`));
    try {
      return await work(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Removes the folder of this process. */
  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A name that no other process has, nor any later one. */
export async function nameOfThisProcess(): Promise<string> {
  return `${hostname()}.${process.pid}.${(await startOf(process.pid)) ?? '0'}`;
}

/** Whether this is the name of a process that is no more; of another host that shares the disk nobody here knows. */
export async function isOfDeadProcess(name: string): Promise<boolean> {
  const [, owner, pid = '', started = ''] = OWNER_FORM.exec(name) ?? [];
  return owner === hostname() && (await startOf(Number(pid))) !== started;
}

/** When a process was started, in its system's own unit; undefined when there is no such process. */
async function startOf(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // proc(5): field 22; the second one may hold spaces and ends with the last parenthesis.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return isAlive(pid) ? '0' : undefined;
  }
}

/** For systems without /proc. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
