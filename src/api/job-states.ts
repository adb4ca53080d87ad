/** A job's states as they change: for its event stream, and for requests that wait for its end. */
import type { JobChanges } from '../jobs/job-changes.ts';

/** A change whose message was lost shows at the next check. */
const LOOK_MS = 5000;

/**
 * The state of now, then one for each change, until there is none or `over` aborts.
 * @param look starts after the watch, so that no change is missed
 */
export async function* jobStates<State>(
  changes: JobChanges,
  jobId: string,
  look: () => Promise<State | undefined>,
  over: AbortSignal,
): AsyncGenerator<State> {
  const merged = new Changes();
  const end = () => merged.end();
  const unwatch = changes.watch(jobId, () => merged.happened());
  const looking = setInterval(() => merged.happened(), LOOK_MS);
  over.addEventListener('abort', end, { once: true });
  // On an open connection a request may come after the server's stop: no event will follow.
  if (over.aborted) end();
  try {
    for (let state = await look(); state !== undefined; state = await look()) {
      yield state;
      if (!(await merged.next())) return;
    }
  } finally {
    unwatch();
    clearInterval(looking);
    over.removeEventListener('abort', end);
  }
}

/** Merges changes that come while one is being handled. */
class Changes {
  #pending = false;
  #ended = false;
  #wake: (() => void) | undefined;

  happened(): void {
    this.#pending = true;
    this.#wake?.();
  }

  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** Resolves with true at the next change, with false at the end. */
  async next(): Promise<boolean> {
    if (!this.#pending && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#pending = false;
    return !this.#ended;
  }
}
