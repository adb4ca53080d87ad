/**
 * Limits concurrency. Keys below their share go first: the capacity divided by the keys that hold
 * or wait for some, rounded up (decisions A6). Otherwise the order decides. A key that holds none
 * may get a unit `beyond` the capacity.
 */

export interface SemaphoreRequest {
  /** Units of the capacity, at most all. Default 1. */
  readonly weight?: number;
  /** Smaller comes first, ties in the order of asking. Default 0. */
  readonly order?: number;
  /** Owner of the share. Default: the same key for all. */
  readonly key?: string;
  /** Aborts the wait with its reason. */
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
  readonly #beyond: number;
  /** Below 0: so many are held beyond the capacity. */
  #free: number;
  /** By key. */
  readonly #held = new Map<string, number>();
  readonly #waiting: Waiting[] = [];

  /** @param beyond units beyond the capacity; default 0 */
  constructor(capacity: number, beyond = 0) {
    this.capacity = capacity;
    this.#beyond = beyond;
    this.#free = capacity;
  }

  /** Unused capacity. */
  get free(): number {
    return Math.max(0, this.#free);
  }

  /**
   * A request for more than one unit cannot be overtaken.
   * @returns releases it; a second call does nothing
   * @throws the signal's reason
   */
  async acquire({ weight = 1, order = 0, key = '', signal }: SemaphoreRequest): Promise<() => void> {
    signal.throwIfAborted();
    const { promise: entered, resolve: enter, reject } = Promise.withResolvers<void>();
    const request: Waiting = { weight: Math.min(weight, this.capacity), order, key, enter };
    const leaveQueue = (): void => {
      const index = this.#waiting.indexOf(request);
      if (index >= 0) {
        this.#waiting.splice(index, 1);
        reject(signal.reason);
        this.#admit();
      }
    };
    const behind = this.#waiting.findIndex((other) => other.order > order);
    this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, request);
    signal.addEventListener('abort', leaveQueue, { once: true });
    this.#admit();
    try {
      await entered;
    } finally {
      signal.removeEventListener('abort', leaveQueue);
    }
    return this.#leaving(request.weight, key);
  }

  /**
   * Takes up to `most` free units at once, none if others wait; leaves `keep` (default 0).
   * @returns how many, possibly 0, and their release; a second call does nothing
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
    const large = this.#waiting.findIndex(({ weight }) => weight > 1);
    const ready = this.#waiting.slice(0, large < 0 ? undefined : large);
    if (this.#free <= 0) {
      const isMore = this.#free > -this.#beyond;
      return isMore ? ready.find(({ key }) => this.#heldBy(key) === 0) : undefined;
    }
    const keys = new Set([...this.#held.keys(), ...this.#waiting.map(({ key }) => key)]);
    const share = Math.ceil(this.capacity / keys.size);
    return ready.find(({ key }) => this.#heldBy(key) < share) ?? first;
  }
}
