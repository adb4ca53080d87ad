/**
 * Watches whether the storage answers. While it is down, requests that need it are refused at once,
 * and jobs that need it wait.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { awayReason } from '../observe/away.ts';
import type { ProbeState, Probes } from '../observe/probes.ts';
import { inTime } from './deadline.ts';
import { type Storage, StorageUnavailable } from './storage.ts';

interface StorageWatchOptions {
  readonly storage: Pick<Storage, 'ping'>;
  /** If it takes longer to answer, it is down, ms (STORAGE_DEADLINE_SECONDS). */
  readonly deadlineMs: number;
  /** Gets the row `storage`. The caller closes it. */
  readonly probes: Probes;
}

const SLOW_MS = 1000;
/** Attempts for work that fails although the storage answers. */
const TRIES = 3;
const RETRY_MS = 500;

export class StorageWatch {
  readonly #options: StorageWatchOptions;
  #answerMs = 0;
  #failure: unknown;
  #ping: Promise<void> | undefined;

  /** The storage counts as `up` until the first check. */
  constructor(options: StorageWatchOptions) {
    this.#options = options;
    options.probes.add('storage', {
      ask: () => this.#ask(),
      details: () => ({ err: this.#failure }),
      figures: () => ({
        soundpost_storage_up: this.#isDown ? 0 : 1,
        soundpost_storage_answer_seconds: this.#answerMs / 1000,
      }),
    });
  }

  get #isDown(): boolean {
    return this.#options.probes.isFailing('storage');
  }

  /** Error of the last check; undefined while the storage answers. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Throws StorageUnavailable while the storage is down. */
  demandUp(): void {
    if (this.#isDown) {
      throw new StorageUnavailable('ETIMEDOUT', 'the storage is known to be away', this.#failure);
    }
  }

  /** Checks the storage now. @returns whether it answers */
  async look(): Promise<boolean> {
    return (await this.#options.probes.ask('storage')) !== 'down';
  }

  /**
   * Does the work; if the storage is down, waits until it is up and does the work again.
   * @param work may be done several times
   * @throws the work's error if the storage answers: for an error of the storage after three
   * attempts, else at once; the signal's reason, or an AbortError of which it is the cause
   */
  async retryUntilUp<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; ) {
      while (this.#isDown) await once(this.#options.probes, 'changed', { signal });
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        if (await this.look()) {
          if (awayReason(error) !== 'storage' || tries >= TRIES) throw error;
          tries += 1;
          await sleep(RETRY_MS, undefined, { signal });
        }
      }
    }
  }

  async #ask(): Promise<ProbeState<'storage'>> {
    const { storage, deadlineMs } = this.#options;
    const startedMs = performance.now();
    const late = new AbortController();
    // A ping of a hanging volume blocks a thread and cannot be cancelled: send no second one.
    this.#ping ??= storage.ping(late.signal).finally(() => {
      this.#ping = undefined;
    });
    try {
      await inTime('ping', deadlineMs, this.#ping);
    } catch (error) {
      late.abort();
      this.#failure = error;
      return 'down';
    }
    this.#failure = undefined;
    this.#answerMs = performance.now() - startedMs;
    return this.#answerMs > SLOW_MS ? 'slow' : 'up';
  }
}
