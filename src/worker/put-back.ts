/** Downloads of jobs that were put back for another key; this worker can continue them. */
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BegunStream, EarlierTry } from 'soundpost-media/source-request';
import type { BegunDownload } from 'soundpost-outbound/download';
import { wasPutBack } from '../jobs/extraction-consumer.ts';

/** The start of which download or stream the file holds. */
type Begun = BegunDownload | BegunStream;

const KEPT_MS = 10 * 60 * 1000;
/** In total; the oldest are dropped first. */
const MOST_BYTES = 1024 ** 3;

interface Kept {
  readonly begun: Begun;
  readonly expiry: NodeJS.Timeout;
}

export class PutBackDownloads {
  readonly #folder: string;
  /** By job id, oldest first. */
  readonly #kept = new Map<string, Kept>();

  /** @param folder need not exist yet; the caller removes it */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What this worker kept of the job, and where the job can leave a download. */
  of({ jobId, signal }: { readonly jobId: string; readonly signal: AbortSignal }): EarlierTry {
    return {
      takeDownload: (path) => this.takeDownload(jobId, path),
      takeStream: (path, identity) => this.takeStream(jobId, path, identity),
      keep: (path, begun) => this.keep(jobId, path, begun),
      isWanted: () => wasPutBack(signal),
    };
  }

  /** Moves the file here. */
  async keep(jobId: string, file: string, begun: Begun): Promise<void> {
    if (begun.receivedBytes > MOST_BYTES) return;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await rename(file, this.#path(jobId));
    const expiry = setTimeout(() => void this.#drop(jobId), KEPT_MS).unref();
    this.#kept.set(jobId, { begun, expiry });
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes() <= MOST_BYTES) break;
      await this.#drop(oldest);
    }
  }

  /** Moves the job's kept download to `file`. @returns undefined when there is none */
  takeDownload(jobId: string, file: string): Promise<BegunDownload | undefined> {
    return this.#take(jobId, file, (begun) => ('validator' in begun ? begun : undefined));
  }

  /** The same for a stream with these segments; a kept file of another stream is dropped. */
  async takeStream(jobId: string, file: string, identity: string): Promise<BegunStream | undefined> {
    const begun = await this.#take(jobId, file, (kept) =>
      'identity' in kept && kept.identity === identity ? kept : undefined,
    );
    if (begun === undefined) await this.#drop(jobId);
    return begun;
  }

  async #take<Wanted extends Begun>(
    jobId: string,
    file: string,
    wanted: (begun: Begun) => Wanted | undefined,
  ): Promise<Wanted | undefined> {
    const kept = this.#kept.get(jobId);
    const begun = kept && wanted(kept.begun);
    if (begun === undefined) return undefined;
    this.#forget(jobId);
    await rename(this.#path(jobId), file);
    return begun;
  }

  #bytes(): number {
    return [...this.#kept.values()].reduce((sum, { begun }) => sum + begun.receivedBytes, 0);
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
