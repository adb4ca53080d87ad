/**
 * Folders for temporary files, one for each piece of work, gone when it has ended in whatever way. A process has a folder of its
 * own for them, named after it, so that what a killed process left can be told from what a living one uses.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** `<host>.<pid>.<start>`: pids are used again, so the time at which the process was started belongs to its name. */
const OWNER_FORM = /^(.+)\.(\d+)\.(\d+)$/;

/** In the name of a process that could not read its own. */
const UNKNOWN_START = '0';

/** Of no job do the steps last so long together; an owner's folder is as young as the last job that began in it. */
const ABANDONED_AFTER_MS = 24 * 60 * 60 * 1000;

export class Workspaces {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
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
  return `${hostname()}.${process.pid}.${(await startOf(process.pid)) ?? UNKNOWN_START}`;
}

/**
 * Whether this is the name of a process that is no more. False when it is not known: of another host that shares the disk nobody
 * here knows, nor of a process that this one may not look at.
 */
export async function isOfDeadProcess(name: string): Promise<boolean> {
  const [, owner, pid = '', started = ''] = OWNER_FORM.exec(name) ?? [];
  if (owner !== hostname()) return false;
  const start = await startOf(Number(pid));
  return start === undefined ? isGone(Number(pid)) : started !== UNKNOWN_START && start !== started;
}

/** Never of this host, whose processes tell for themselves; nor what has no owner's name. */
async function isAbandoned(folder: string, name: string): Promise<boolean> {
  const owner = OWNER_FORM.exec(name)?.[1];
  if (owner === undefined || owner === hostname()) return false;
  const found = await stat(folder).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS;
}

/**
 * When a process was started, in its system's own unit. Undefined where nobody tells: there is no such process, /proc hides it
 * (hidepid, proc(5)), or no file can be opened now.
 */
async function startOf(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // proc(5): field 22; the second one may hold spaces and ends with the last parenthesis.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

/** kill(2): only ESRCH says that there is no such process; EPERM is said of one that lives. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}
