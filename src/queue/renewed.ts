/**
 * A queue or flow producer of BullMQ on a connection whose commands have deadlines. BullMQ asks Redis for its version once, when one is made: where that
 * answer comes too late, on a busy machine or from a Redis that stalls, all it is ever asked for fails with that old error. Such a one is replaced.
 */
import { setTimeout as wait } from 'node:timers/promises';

interface Producer {
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

const AGAIN_MS = 250;

export class Renewed<Kind extends Producer> {
  readonly #make: () => Kind;
  readonly #closing = new AbortController();
  readonly #usable: Promise<Kind>;
  #current: Kind;

  /** @param make one that has a listener for its errors */
  constructor(make: () => Kind) {
    this.#make = make;
    this.#current = make();
    this.#usable = this.#untilUsable();
    // Whoever asks for it hears of it.
    this.#usable.catch(() => undefined);
  }

  /** The one that works; rejects at once while there is none, with why. */
  async get(): Promise<Kind> {
    const current = this.#current;
    await current.waitUntilReady();
    return current;
  }

  /** Resolves with the one that works, however long that takes; rejects when it was closed first. */
  usable(): Promise<Kind> {
    return this.#usable;
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the queue was closed'));
    await this.#current.close();
  }

  async #untilUsable(): Promise<Kind> {
    for (;;) {
      const found = await this.get().catch(() => undefined);
      if (found !== undefined) {
        return found;
      }
      await wait(AGAIN_MS, undefined, { ref: false, signal: this.#closing.signal });
      const failed = this.#current;
      this.#current = this.#make();
      failed.close().catch(() => undefined);
    }
  }
}
