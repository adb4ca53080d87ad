/** A clock of a test's own, which jumps to when the next one wants to wake. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StreamRequests } from '../../src/jobs/stream-requests.ts';

type Lease = NonNullable<ConstructorParameters<typeof StreamRequests>[0]['lease']>;

export class JumpClock {
  #nowMs = 0;
  #isJumping = false;
  readonly #sleepers = new Set<{ readonly atMs: number; readonly wake: () => void }>();
  readonly #givenMs = new Map<string, number>();

  readonly nowMs = (): number => this.#nowMs;

  readonly sleep = (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#sleepers.add({ atMs: this.#nowMs + ms, wake: resolve });
    if (!this.#isJumping) void this.#jump();
    return promise;
  };

  /** One wakes in a turn of the event loop, so that what it does then comes before the next. */
  async #jump(): Promise<void> {
    this.#isJumping = true;
    for (await nextTurn(); this.#sleepers.size > 0; await nextTurn()) {
      const first = [...this.#sleepers].reduce((least, one) => (one.atMs < least.atMs ? one : least));
      this.#sleepers.delete(first);
      this.#nowMs = Math.max(this.#nowMs, first.atMs);
      first.wake();
    }
    this.#isJumping = false;
  }

  /** All places of a host, and its time as Redis gives it out, on this clock. */
  readonly lease: Lease = async ({ tenant, host, wanted, beginsMs }) => {
    const name = `${tenant} ${host}`;
    const fromMs = Math.max(this.#nowMs, this.#givenMs.get(name) ?? 0);
    this.#givenMs.set(name, fromMs + beginsMs);
    return { places: wanted === 0 ? 0 : 8, waitMs: fromMs - this.#nowMs };
  };
}

/** The most of these times that lie within any stretch of so many ms. */
export function mostWithin(timesMs: readonly number[], ms: number): number {
  const sorted = timesMs.toSorted((a, b) => a - b);
  let from = 0;
  return sorted.reduce((most, time, nth) => {
    while ((sorted[from] ?? time) <= time - ms) from += 1;
    return Math.max(most, nth - from + 1);
  }, 0);
}
