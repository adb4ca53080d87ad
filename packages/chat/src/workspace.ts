/** A folder for the files of one send, gone when the send has ended in whatever way. */
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isOfDeadProcess, nameOfThisProcess } from 'soundpost-base/process-home';

const PREFIX = 'gateway-';
/** `gateway-<process>-<six of mkdtemp>`. */
const NAME_FORM = /^gateway-(.+)-\w{6}$/;
/** No send lives longer, so what is older was left by a process that died, be it on another host. */
const ABANDONED_AFTER_MS = 60 * 60 * 1000;

export class Workspaces {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async use<T>(work: (folder: string) => Promise<T>): Promise<T> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(join(this.#root, `${PREFIX}${await nameOfThisProcess()}-`));
    try {
      return await work(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Removes what processes that died have left. */
  async sweep(): Promise<void> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const names = (await readdir(this.#root)).filter((name) => name.startsWith(PREFIX));
    for (const name of names) {
      const folder = join(this.#root, name);
      const found = await stat(folder).catch(() => undefined);
      const isOld = found !== undefined && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS;
      if (isOld || (await isOfDeadProcess(NAME_FORM.exec(name)?.[1] ?? ''))) {
        await rm(folder, { recursive: true, force: true });
      }
    }
  }
}
