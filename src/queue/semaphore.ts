/** Room for so many at a time, given in an order, to whoever is still waiting for it. */

export interface Wish {
  /** How much of the room; at most all of it. Default 1. */
  readonly weight?: number;
  /** The smaller comes first; the same in the order of asking. Default 0. */
  readonly order?: number;
  /** Ends the waiting with its reason. */
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly weight: number;
  readonly order: number;
  readonly enter: () => void;
}

export class Semaphore {
  readonly capacity: number;
  #free: number;
  readonly #waiting: Waiting[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#free = capacity;
  }

  /** What nobody holds. */
  get free(): number {
    return this.#free;
  }

  /**
   * Whoever is first in the order is waited for: nobody overtakes one that needs more room than there is.
   * @returns gives the room back; a second call does nothing
   * @throws the signal's reason
   */
  async acquire({ weight = 1, order = 0, signal }: Wish): Promise<() => void> {
    signal.throwIfAborted();
    const { promise: entered, resolve: enter, reject } = Promise.withResolvers<void>();
    const wish: Waiting = { weight: Math.min(weight, this.capacity), order, enter };
    const leaveQueue = (): void => {
      const index = this.#waiting.indexOf(wish);
      if (index >= 0) {
        this.#waiting.splice(index, 1);
        reject(signal.reason);
        this.#admit();
      }
    };
    const behind = this.#waiting.findIndex((other) => other.order > order);
    this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, wish);
    signal.addEventListener('abort', leaveQueue, { once: true });
    this.#admit();
    try {
      await entered;
    } finally {
      signal.removeEventListener('abort', leaveQueue);
    }
    return this.#leaving(wish.weight);
  }

  /**
   * Takes up to `most` of what is free and what nobody waits for, without waiting, and leaves `keep` of it (default 0).
   * @returns how much it was, maybe 0, and what gives it back; a second call does nothing
   */
  takeFree(most: number, keep = 0): { readonly weight: number; readonly release: () => void } {
    const weight = this.#waiting.length > 0 ? 0 : Math.max(0, Math.min(most, this.#free - keep));
    this.#free -= weight;
    return { weight, release: this.#leaving(weight) };
  }

  #leaving(weight: number): () => void {
    let held = true;
    return () => {
      if (held) {
        held = false;
        this.#free += weight;
        this.#admit();
      }
    };
  }

  #admit(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (first.weight > this.#free) {
        return;
      }
      this.#free -= first.weight;
      this.#waiting.shift();
      first.enter();
    }
  }
}
