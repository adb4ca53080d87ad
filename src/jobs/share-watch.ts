/**
 * Shares of a full worker (decisions A6, docs/decisions/0004-fairness.md): jobs are begun in the order of the queue, but a key whose sources are slow would
 * hold all places however late its next turn is. So a job that came in ahead of its key's share is put back for one of a key that has less.
 */
import type { Logger } from 'soundpost-base/logger';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { bringForward, firstWaiting, type WaitingJob } from './bullmq-internals.ts';

/** Of a job that was taken up. */
export interface Place {
  readonly tenant: string;
  /** The smaller is served first. */
  readonly order: number;
  /** It has an encoder, and is not interrupted. */
  readonly hasTurn: boolean;
}

interface ShareWatchOptions<Taken extends Place> {
  readonly redis: Redis;
  /** All of a worker that is full; empty while it has room. */
  readonly places: () => readonly Taken[];
  readonly putBack: (place: Taken) => void;
  readonly logger: Logger;
}

/** For what no message tells, or told in vain. */
const LOOK_EVERY_MS = 1000;
/** How long a job waits for another place of its key; the first one is given to it at once. */
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
    const { redis, places, logger } = this.#options;
    if (this.#isLooking) return;
    const keys = keysOf(places());
    if (keys === undefined) return;
    this.#isLooking = true;
    try {
      const waiting = await firstWaiting(redis, keys.served, keys.others);
      if (waiting !== undefined) await this.#makeRoom(waiting);
    } catch (error) {
      logger.debug({ err: error }, 'the queue could not be looked at');
    } finally {
      this.#isLooking = false;
    }
  }

  /** To be called with each job that was accepted. */
  see(job: Pick<WaitingJob, 'tenant' | 'jobId'>): void {
    if (this.#options.places().length === 0) return;
    this.#makeRoom({ ...job, submittedAtMs: redisNow(), isInFront: false }).catch((error: Error) =>
      this.#options.logger.debug({ err: error }, 'no room could be made'),
    );
  }

  async #makeRoom(waiting: WaitingJob): Promise<void> {
    const { redis, places, putBack } = this.#options;
    if (placeFor(waiting, places(), redisNow()) === undefined) return;
    if (!waiting.isInFront && !(await bringForward(redis, waiting.jobId))) return;
    // Looked at again: an answer may take its time.
    const place = placeFor(waiting, places(), redisNow());
    if (place !== undefined) putBack(place);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** How many places a key holds. */
function holdings(places: readonly Place[]): (tenant: string) => number {
  const held = Map.groupBy(places, ({ tenant }) => tenant);
  return (tenant) => held.get(tenant)?.length ?? 0;
}

/** Keys that have their share of the places, and those that have less; undefined where no place would be given to any key. */
function keysOf(
  places: readonly Place[],
): { readonly served: string[]; readonly others: string[] } | undefined {
  const held = holdings(places);
  const tenants = [...new Set(places.map(({ tenant }) => tenant))];
  const most = Math.max(0, ...tenants.map(held));
  if (most < 2) return undefined;
  const { served = [], others = [] } = Object.groupBy(tenants, (tenant) =>
    held(tenant) > most - 2 ? 'served' : 'others',
  );
  return { served, others };
}

/**
 * Between keys that wait places differ by one at most: each has the places divided by the keys, rounded up or down.
 * @returns what is put back for it: the one that is served last, of the key that holds most
 */
export function placeFor<Taken extends Place>(
  waiting: Pick<WaitingJob, 'tenant' | 'submittedAtMs'>,
  places: readonly Taken[],
  nowMs: number,
): Taken | undefined {
  const held = holdings(places);
  const own = held(waiting.tenant);
  if (own > 0 && nowMs - waiting.submittedAtMs < PATIENCE_MS) return undefined;
  return places
    .filter(({ hasTurn, tenant }) => !hasTurn && held(tenant) >= own + 2)
    .toSorted((a, b) => held(b.tenant) - held(a.tenant) || b.order - a.order)[0];
}
