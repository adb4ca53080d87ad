/** What one piece of work may write, and its place in the line for more; `DiskSpace` hands it out. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

export class DiskClaim {
  claimedBytes = 0;
  /** What it waits for. */
  wantedBytes = 0;
  /** Whether it waits, for space or for something that others have. */
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

  /** What has been written is what lies in the folder. */
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
   * Claims so much more. Waits for it while others of this process work and will free space.
   * @throws `outOfDiskSpace` when there is nobody to wait for; the signal's reason
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
   * Waits for something else with what was claimed so far. Whoever waits so may have to make room for others.
   * @throws `outOfDiskSpace` then; what `wait` throws
   */
  async idle<Result>(signal: AbortSignal, wait: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const refused = new AbortController();
    return this.#wait(
      signal,
      (error) => refused.abort(error),
      wait(AbortSignal.any([signal, refused.signal])),
    );
  }

  /** Gives everything back. */
  release(): void {
    this.claimedBytes = 0;
    this.#onEnd(this);
  }

  /** For DiskSpace: what was wanted is there. */
  grant(): void {
    this.claimedBytes += this.wantedBytes;
    this.wantedBytes = 0;
    this.isIdle = false;
    this.#onGrant();
  }

  /** For DiskSpace: the waiting ends badly. Until it is released the claim counts as one that works, towards its end. */
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

/** Space that is taken on the disk. What goes away meanwhile takes none. */
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
