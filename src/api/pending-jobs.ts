/** What a stream of all jobs of a key is to send. */

/** Of more jobs than this a reader that is too slow for them is told at once, by a reset. */
const MOST_PENDING = 1000;

/** Jobs that have changed: each once, however often it has, and never so many that a reader who stands still costs memory. */
export class PendingJobs {
  readonly #jobs = new Set<string>();
  #isReset = true;
  #wake: (() => void) | undefined;

  changed(jobId: string): void {
    // The list that follows a reset has it.
    if (this.#isReset) return;
    this.#jobs.add(jobId);
    if (this.#jobs.size > MOST_PENDING) this.reset();
    else this.wake();
  }

  reset(): void {
    this.#jobs.clear();
    this.#isReset = true;
    this.wake();
  }

  wake(): void {
    this.#wake?.();
  }

  /** At first `reset`. Undefined when there is nothing to send. */
  take(): string | undefined {
    if (this.#isReset) {
      this.#isReset = false;
      return 'reset';
    }
    const [jobId] = this.#jobs;
    if (jobId !== undefined) this.#jobs.delete(jobId);
    return jobId;
  }

  /** Resolves with the next that is to be sent, or when it was woken. */
  waitForOne(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
