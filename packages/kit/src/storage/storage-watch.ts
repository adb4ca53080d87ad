/**
 * Whether the storage answers: asked every few seconds, and at once when something that it was asked for has failed. While it is away, requests
 * that need it are refused without waiting for it, and workers take no jobs.
 */
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import { inTime } from './deadline.ts';
import { type Storage, type StorageState, StorageUnavailable } from './storage.ts';

interface StorageWatchOptions {
  readonly storage: Pick<Storage, 'ping'>;
  /** What has not answered by then is away, ms (STORAGE_DEADLINE_SECONDS). */
  readonly deadlineMs: number;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 5000;
const LOOK_WHILE_DOWN_MS = 500;
const SLOW_MS = 1000;
/** How often work is done again at once that fails although the storage answers. */
const VAIN_TRIES = 3;

/** Emits `down` and `up` when that changes. */
export class StorageWatch extends EventEmitter<{ down: []; up: [] }> {
  readonly #options: StorageWatchOptions;
  #state: StorageState = 'up';
  #answerMs = 0;
  #failure: unknown;
  #looking: Promise<boolean> | undefined;
  #ping: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** It is taken for `up` until the first look, which the caller makes. */
  constructor(options: StorageWatchOptions) {
    super();
    // Each job that waits for the storage listens.
    this.setMaxListeners(0);
    this.#options = options;
  }

  get state(): StorageState {
    return this.#state;
  }

  /** How long the last answer took, seconds. */
  get answerSeconds(): number {
    return this.#answerMs / 1000;
  }

  /** What the last look failed with; undefined while the storage answers. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Throws StorageUnavailable while the storage is known to be away. */
  demandUp(): void {
    if (this.#state === 'down') {
      throw new StorageUnavailable('ETIMEDOUT', 'the storage is known to be away', this.#failure);
    }
  }

  /** Asks the storage, and goes on asking until `close`. Whoever calls meanwhile gets the same answer. @returns whether it answers */
  look(): Promise<boolean> {
    this.#looking ??= this.#ask().finally(() => {
      this.#looking = undefined;
      if (this.#isClosed) return;
      clearTimeout(this.#timer);
      const everyMs = this.#state === 'down' ? LOOK_WHILE_DOWN_MS : LOOK_EVERY_MS;
      this.#timer = setTimeout(() => void this.look(), everyMs).unref();
    });
    return this.#looking;
  }

  /**
   * Does the work; while the storage is away, waits for it and does it again.
   * @param work may be done several times
   * @throws what the work throws although the storage answers: of a lost connection or a late answer after three tries, else at once; the
   * signal's reason
   */
  async insist<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    for (let vain = 0; ; ) {
      while (this.#state === 'down') await once(this, 'up', { signal });
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        if (await this.look()) {
          vain += 1;
          if (!isConnectionLost(error) || vain >= VAIN_TRIES) throw error;
          await sleep(LOOK_WHILE_DOWN_MS, undefined, { signal });
        }
      }
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #ask(): Promise<boolean> {
    const { storage, deadlineMs } = this.#options;
    const startedMs = performance.now();
    const late = new AbortController();
    // A ping of a volume that hangs keeps a thread and cannot be called back: no second one is sent beside it.
    this.#ping ??= storage.ping(late.signal).finally(() => {
      this.#ping = undefined;
    });
    try {
      await inTime('ping', deadlineMs, this.#ping);
      this.#answerMs = performance.now() - startedMs;
      this.#note(this.#answerMs > SLOW_MS ? 'slow' : 'up', undefined);
      return true;
    } catch (error) {
      late.abort();
      this.#note('down', error);
      return false;
    }
  }

  #note(state: StorageState, failure: unknown): void {
    const before = this.#state;
    this.#state = state;
    this.#failure = failure;
    if (this.#isClosed || (before === 'down') === (state === 'down')) return;
    if (state === 'down') {
      this.#options.logger.error({ err: failure }, 'the storage is away: what needs it waits or is refused');
      this.emit('down');
    } else {
      this.#options.logger.warn('the storage answers again');
      this.emit('up');
    }
  }
}

const CONNECTION_LOST = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTCONN', 'ESTALE']);

function isConnectionLost(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    CONNECTION_LOST.has(error.code)
  );
}
