/**
 * Shares of a full worker (decisions A6, docs/decisions/0004-fairness.md): jobs are begun in the order of the queue, but a key whose sources are slow would
 * hold all places however late its next turn is. So a job that came in ahead of its key's share is put back for one of a key that has less.
 */
import type { Logger } from '../observe/logger.ts';
import { redisNow } from '../redis/clock.ts';
import type { Redis } from '../redis/connection.ts';
import { bringForward, firstWaiting, type WaitingJob } from './bullmq-internals.ts';

/** Of a job that was taken up. */
export interface Place {
  readonly tenant: string;
  /** The smaller is served first. */
  readonly order: number;
  /** Ms since the epoch. */
  readonly submittedAtMs: number;
  /** `in-hand`: nothing was begun yet; `begun`: its source is fetched, or waits for an encoder; `turn`: it has one, and is not interrupted. */
  readonly state: 'in-hand' | 'begun' | 'turn';
}

interface ShareWatchOptions<Taken extends Place> {
  readonly redis: Redis;
  /** All of a worker that is full; empty while it has room. */
  readonly places: () => readonly Taken[];
  readonly putBack: (place: Taken) => void;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 250;
/** How long a job waits until what others have begun is put back for it. A place that nothing was begun in is given up at once. */
const PATIENCE_MS = 2000;

export class ShareWatch<Taken extends Place> {
  readonly #options: ShareWatchOptions<Taken>;
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;

  constructor(options: ShareWatchOptions<Taken>) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#look(), LOOK_EVERY_MS);
  }

  async #look(): Promise<void> {
    const { redis, places, putBack, logger } = this.#options;
    if (this.#isLooking) return;
    const served = servedKeys(places());
    if (served === undefined) return;
    this.#isLooking = true;
    try {
      const waiting = await firstWaiting(redis, served);
      // Looked at again: an answer may take its time.
      const place = placeToPutBack(places(), waiting, redisNow());
      if (place === undefined) return;
      if (waiting !== undefined && place.givenTo === 'waiting') await bringForward(redis, waiting.jobId);
      putBack(place.taken);
    } catch (error) {
      logger.debug({ err: error }, 'the queue could not be looked at');
    } finally {
      this.#isLooking = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** How many places a key holds: those in hand are none. */
function holdings(places: readonly Place[]): (tenant: string) => number {
  const held = Map.groupBy(
    places.filter(({ state }) => state !== 'in-hand'),
    ({ tenant }) => tenant,
  );
  return (tenant) => held.get(tenant)?.length ?? 0;
}

/** Of those, the one that is served last. */
function last<Taken extends Place>(places: readonly Taken[]): Taken | undefined {
  return places.toSorted((a, b) => b.order - a.order)[0];
}

/** Keys that no place would be given to; undefined where none would be given to any. */
function servedKeys(places: readonly Place[]): string[] | undefined {
  const held = holdings(places);
  const inHand = last(places.filter(({ state }) => state === 'in-hand'));
  const tenants = [...new Set(places.map(({ tenant }) => tenant))];
  // Who holds as many as this is served.
  const limit = inHand === undefined ? Math.max(0, ...tenants.map(held)) - 1 : held(inHand.tenant);
  return limit > 0 || inHand !== undefined ? tenants.filter((tenant) => held(tenant) >= limit) : undefined;
}

/**
 * Between keys that wait places differ by one at most. That is each key's share, the places divided by the keys, rounded up or down.
 * @param waiting the first in the queue that none of {@link servedKeys} owns
 * @returns what is put back, and for whom
 */
export function placeToPutBack<Taken extends Place>(
  places: readonly Taken[],
  waiting: WaitingJob | undefined,
  nowMs: number,
): { readonly taken: Taken; readonly givenTo: 'waiting' | 'in-hand' } | undefined {
  const held = holdings(places);
  const inHand = last(places.filter(({ state }) => state === 'in-hand'));
  if (inHand !== undefined && waiting !== undefined && held(waiting.tenant) < held(inHand.tenant)) {
    return { taken: inHand, givenTo: 'waiting' };
  }
  const claimant = inHand ?? waiting;
  if (claimant === undefined || nowMs - claimant.submittedAtMs < PATIENCE_MS) return undefined;
  const above = places.filter(
    ({ state, tenant }) => state === 'begun' && held(tenant) >= held(claimant.tenant) + 2,
  );
  const most = Math.max(...above.map(({ tenant }) => held(tenant)));
  const taken = last(above.filter(({ tenant }) => held(tenant) === most));
  return taken && { taken, givenTo: inHand === undefined ? 'waiting' : 'in-hand' };
}
