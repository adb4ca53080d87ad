/** The only way to give up on work after a time. */

const STEPS = 10;

interface DeadlineOptions {
  /** The caller's own signal: as soon as it aborts, the wait ends with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Makes the reason when the time is over; default a DOMException `TimeoutError`. */
  readonly reason?: (() => unknown) | undefined;
}

export interface Deadline extends Disposable {
  /** Aborts once, at the end of the time or with the caller's signal; never after disposal. */
  readonly signal: AbortSignal;
  /** Of `ms`; counted in tenths, so work that ends at once has used none. */
  readonly leftMs: number;
  /**
   * Restarts the time, to limit how long work may go without progress.
   * @param ms default as before
   */
  renew(ms?: number): void;
}

/**
 * Held with `using`: until disposal its timer keeps the process alive, and it listens to the
 * caller's signal.
 *
 * Only time in which this process ran counts: of a stall, however long, at most two tenths of `ms`.
 * So no peer is blamed for an answer that this process has not read yet. Timers run before answers
 * in a turn of the event loop, so the signal aborts after the answers of its turn.
 * @param ms how long, from 0 on
 */
export function deadline(ms: number, options: DeadlineOptions = {}): Deadline {
  return new OwnTime(ms, options);
}

/**
 * The result of `work` within `ms` (see {@link deadline}).
 * @param work gets a signal that aborts when the time is over. A later result is dropped, whether
 * it heeds the signal or not. It is not started if the caller's signal has already aborted
 * @throws the reason, when the time is over or the caller's signal aborts; what `work` throws
 */
export async function within<Result>(
  ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
  options: DeadlineOptions = {},
): Promise<Result> {
  using limit = deadline(ms, options);
  limit.signal.throwIfAborted();
  return await untilAborted(work(limit.signal), limit.signal);
}

/**
 * The result of `work`, which is already running: for several in a row with one deadline, or for a
 * signal that is no deadline. A later result is dropped.
 * @throws the reason of `signal` as soon as that aborts; what `work` throws
 */
export function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason);
    const settle = <Value>(end: (value: Value) => void, value: Value): void => {
      signal.removeEventListener('abort', giveUp);
      end(value);
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp);
    work.then(
      (result) => settle(resolve, result),
      (error: unknown) => settle(reject, error),
    );
  });
}

/** Counts in steps of a tenth, one timer at a time: most work ends before the first one. */
class OwnTime implements Deadline {
  readonly #options: DeadlineOptions;
  readonly #controller = new AbortController();
  #ms: number;
  #leftMs: number;
  #lastMs = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #ending: NodeJS.Immediate | undefined;

  constructor(ms: number, options: DeadlineOptions) {
    this.#ms = ms;
    this.#options = options;
    this.#leftMs = ms;
    if (options.signal?.aborted) {
      this.#controller.abort(options.signal.reason);
      return;
    }
    options.signal?.addEventListener('abort', this.#onAbort);
    this.#wait();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get leftMs(): number {
    return this.#leftMs;
  }

  renew(ms = this.#ms): void {
    this.#ms = ms;
    this.#leftMs = ms;
    this.#lastMs = performance.now();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#ending);
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
  }

  /** Timers count whole milliseconds. */
  get #stepMs(): number {
    return Math.max(1, this.#ms / STEPS);
  }

  #wait(): void {
    this.#timer = setTimeout(this.#look, Math.min(this.#leftMs, this.#stepMs));
  }

  readonly #onAbort = (): void => this.#abort(this.#options.signal?.reason);

  readonly #look = (): void => {
    const nowMs = performance.now();
    this.#leftMs -= Math.min(nowMs - this.#lastMs, 2 * this.#stepMs);
    this.#lastMs = nowMs;
    if (this.#leftMs < 1) this.#ending = setImmediate(this.#over);
    else this.#wait();
  };

  readonly #over = (): void => {
    const { reason = timeout } = this.#options;
    // An answer in this turn may have restarted the time.
    if (this.#leftMs < 1) this.#abort(reason());
    else this.#wait();
  };

  #abort(reason: unknown): void {
    this[Symbol.dispose]();
    this.#controller.abort(reason);
  }
}

function timeout(): DOMException {
  return new DOMException('The operation was aborted due to timeout', 'TimeoutError');
}
