/** Disk space claimed for one piece of work, and its place in the queue; made by `DiskSpace`. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

export class DiskClaim {
  claimedBytes = 0;
  /** The bytes that it waits for. */
  wantedBytes = 0;
  /** Whether it waits, for space or for something that others hold. */
  isIdle = false;
  #writtenBytes: () => Promise<number> = async () => 0;
  #onGrant: () => void = () => undefined;
  #onRefuse: (error: unknown) => void = () => undefined;
  readonly #onChange: () => void;
  readonly #onEnd: (claim: DiskClaim) => void;

  constructor(onChange: () => void, onEnd: (claim: DiskClaim) => void) {
    this.#onChange = onChange;
    this.#onEnd = onEnd;
  }

  /** Counts the files in the folder as written. */
  countIn(folder: string): void {
    this.#writtenBytes = () => bytesIn(folder);
  }

  countBy(writtenBytes: () => Promise<number>): void {
    this.#writtenBytes = writtenBytes;
  }

  async outstandingBytes(): Promise<number> {
    return this.claimedBytes === 0 ? 0 : Math.max(0, this.claimedBytes - (await this.#writtenBytes()));
  }

  /**
   * Claims more. Waits while others of this process work and will free space.
   * @throws `outOfDiskSpace` if there is nobody to wait for; the signal's reason
   */
  async grow(bytes: number, signal: AbortSignal): Promise<void> {
    if (bytes <= 0) return;
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.wantedBytes = bytes;
    this.#onGrant = resolve;
    await this.#wait(signal, reject, promise);
  }

  /**
   * Waits for something else while holding its claim, which may be refused to make room for others.
   * @throws `outOfDiskSpace` then; the error of `wait`
   */
  async idle<Result>(signal: AbortSignal, wait: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const refused = new AbortController();
    return this.#wait(
      signal,
      (error) => refused.abort(error),
      wait(AbortSignal.any([signal, refused.signal])),
    );
  }

  /** Releases everything. */
  release(): void {
    this.claimedBytes = 0;
    this.#onEnd(this);
  }

  /** For DiskSpace: grants the wanted bytes. */
  grant(): void {
    this.claimedBytes += this.wantedBytes;
    this.wantedBytes = 0;
    this.isIdle = false;
    this.#onGrant();
  }

  /** For DiskSpace: ends the wait with an error. Until its release, the claim counts as working. */
  refuse(error: unknown): void {
    this.wantedBytes = 0;
    this.isIdle = false;
    this.#onRefuse(error);
    this.#onChange();
  }

  async #wait<Result>(
    signal: AbortSignal,
    onRefuse: (error: unknown) => void,
    waiting: Promise<Result>,
  ): Promise<Result> {
    const onAbort = (): void => this.refuse(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#onRefuse = onRefuse;
    this.isIdle = true;
    this.#onChange();
    try {
      return await waiting;
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.isIdle = false;
      this.#onChange();
    }
  }
}

/** Disk space used by a folder. Files that vanish during the count are ignored. */
async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return bytesIn(path);
      return lstat(path).then(
        ({ blocks }) => blocks * 512,
        () => 0,
      );
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}
