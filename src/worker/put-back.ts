/** Downloads of jobs that were put back for another key (src/queue/share-watch.ts): this worker continues them when it takes the job up again. */
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BegunDownload } from '../outbound/download.ts';

const KEPT_MS = 10 * 60 * 1000;
/** Of all together; the oldest go first. */
const MOST_BYTES = 1024 ** 3;

interface Kept extends BegunDownload {
  readonly expiry: NodeJS.Timeout;
}

export class PutBackDownloads {
  readonly #folder: string;
  /** By the job's id, the oldest first. */
  readonly #kept = new Map<string, Kept>();

  /** @param folder need not exist yet; the caller removes it */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Moves the file here. */
  async keep(jobId: string, file: string, begun: BegunDownload): Promise<void> {
    if (begun.receivedBytes > MOST_BYTES) return;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await rename(file, this.#path(jobId));
    const expiry = setTimeout(() => void this.#drop(jobId), KEPT_MS).unref();
    this.#kept.set(jobId, { ...begun, expiry });
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes() <= MOST_BYTES) break;
      await this.#drop(oldest);
    }
  }

  /** Moves what was kept of the job to `file`. @returns undefined when nothing was */
  async take(jobId: string, file: string): Promise<BegunDownload | undefined> {
    const kept = this.#forget(jobId);
    if (kept === undefined) return undefined;
    await rename(this.#path(jobId), file);
    const { receivedBytes, totalBytes, validator } = kept;
    return { receivedBytes, totalBytes, validator };
  }

  #bytes(): number {
    return [...this.#kept.values()].reduce((sum, { receivedBytes }) => sum + receivedBytes, 0);
  }

  #forget(jobId: string): Kept | undefined {
    const kept = this.#kept.get(jobId);
    clearTimeout(kept?.expiry);
    this.#kept.delete(jobId);
    return kept;
  }

  async #drop(jobId: string): Promise<void> {
    if (this.#forget(jobId) !== undefined) await rm(this.#path(jobId), { force: true });
  }

  #path(jobId: string): string {
    return join(this.#folder, jobId);
  }
}
