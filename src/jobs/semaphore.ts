/**
 * Room for so many at a time, given to whoever is still waiting for it: first to keys that hold less than their share, which is the room divided by the keys that
 * hold some or wait, rounded up (decisions A6), and among those in an order.
 */

export interface Wish {
  /** How much of the room; at most all of it. Default 1. */
  readonly weight?: number;
  /** The smaller comes first; the same in the order of asking. Default 0. */
  readonly order?: number;
  /** Whose it is. Default: all are of one key. */
  readonly key?: string;
  /** Ends the waiting with its reason. */
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly weight: number;
  readonly order: number;
  readonly key: string;
  readonly enter: () => void;
}

export class Semaphore {
  readonly capacity: number;
  #free: number;
  /** By key. */
  readonly #held = new Map<string, number>();
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
   * One that needs more than a place is waited for: nobody overtakes it.
   * @returns gives the room back; a second call does nothing
   * @throws the signal's reason
   */
  async acquire({ weight = 1, order = 0, key = '', signal }: Wish): Promise<() => void> {
    signal.throwIfAborted();
    const { promise: entered, resolve: enter, reject } = Promise.withResolvers<void>();
    const wish: Waiting = { weight: Math.min(weight, this.capacity), order, key, enter };
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
    return this.#leaving(wish.weight, key);
  }

  /**
   * Takes up to `most` of what is free and what nobody waits for, without waiting, and leaves `keep` of it (default 0).
   * @returns how much it was, maybe 0, and what gives it back; a second call does nothing
   */
  takeFree(most: number, keep = 0): { readonly weight: number; readonly release: () => void } {
    const weight = this.#waiting.length > 0 ? 0 : Math.max(0, Math.min(most, this.#free - keep));
    this.#take(weight);
    return { weight, release: this.#leaving(weight) };
  }

  #take(weight: number, key?: string): void {
    this.#free -= weight;
    if (key !== undefined) this.#held.set(key, this.#heldBy(key) + weight);
  }

  #heldBy(key: string): number {
    return this.#held.get(key) ?? 0;
  }

  #leaving(weight: number, key?: string): () => void {
    let held = true;
    return () => {
      if (held) {
        held = false;
        this.#free += weight;
        if (key !== undefined) this.#give(key, weight);
        this.#admit();
      }
    };
  }

  #give(key: string, weight: number): void {
    const left = this.#heldBy(key) - weight;
    if (left > 0) this.#held.set(key, left);
    else this.#held.delete(key);
  }

  #admit(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#take(next.weight, next.key);
      next.enter();
    }
  }

  #next(): Waiting | undefined {
    const [first] = this.#waiting;
    if (first === undefined || first.weight > 1) {
      return first && first.weight <= this.#free ? first : undefined;
    }
    if (this.#free === 0) return undefined;
    const large = this.#waiting.findIndex(({ weight }) => weight > 1);
    const ready = this.#waiting.slice(0, large < 0 ? undefined : large);
    const keys = new Set([...this.#held.keys(), ...this.#waiting.map(({ key }) => key)]);
    const share = Math.ceil(this.capacity / keys.size);
    return ready.find(({ key }) => this.#heldBy(key) < share) ?? first;
  }
}
