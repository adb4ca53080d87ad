/**
 * A job that was taken up ahead of its turn yields its place to a key that has none in this worker: what a key downloads ahead would
 * keep the others from their turns otherwise (docs/decisions/0004-fairness.md).
 */
import type { Queue } from 'bullmq';
import type { Logger } from '../observe/logger.ts';
import type { ExtractPayload } from './payloads.ts';

/** Of a job that was taken up. */
export interface Place {
  readonly tenant: string;
  /** The smaller is served first. */
  readonly order: number;
  /** It has an encoder. */
  readonly hasTurn: boolean;
}

interface NewcomerWatchOptions<Taken extends Place> {
  /** On a connection of the role `request`. */
  readonly queue: Queue;
  /** All of a worker that is full; empty while it has room. */
  readonly places: () => readonly Taken[];
  readonly onYield: (place: Taken) => void;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 1000;

export class NewcomerWatch<Taken extends Place> {
  readonly #options: NewcomerWatchOptions<Taken>;
  readonly #timer: NodeJS.Timeout;

  constructor(options: NewcomerWatchOptions<Taken>) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.#look().catch((error: Error) =>
        options.logger.debug({ error: error.message }, 'the queue could not be looked at'),
      );
    }, LOOK_EVERY_MS);
  }

  async #look(): Promise<void> {
    const { queue, places, onYield } = this.#options;
    if (places().length === 0) return;
    const [next] = await queue.getPrioritized(0, 0);
    // Looked at again: an answer may take its time.
    const place = next && placeFor(next.priority, (next.data as ExtractPayload).tenant, places());
    if (place !== undefined) onYield(place);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Of those without a turn the one that is served last, if it comes behind the newcomer; undefined when the key has a place already. */
function placeFor<Taken extends Place>(
  order: number,
  tenant: string,
  places: readonly Taken[],
): Taken | undefined {
  if (places.some((place) => place.tenant === tenant)) return undefined;
  return places
    .filter((place) => !place.hasTurn && place.order > order)
    .toSorted((a, b) => b.order - a.order)[0];
}
