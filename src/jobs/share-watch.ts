/**
 * Fair shares of a full worker (decisions A6, docs/decisions/0004-fairness.md). A key with slow
 * sources could hold every slot, so its excess jobs are put back for other keys.
 */
import type { Logger } from 'soundpost-base/logger';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { bringForward, firstWaiting, type WaitingJob } from './bullmq-internals.ts';

/** A running job's slot. */
export interface Place {
  readonly tenant: string;
  /** Smaller is served first. */
  readonly order: number;
  /** It has an encoder and is not interrupted. */
  readonly hasTurn: boolean;
}

interface ShareWatchOptions<Taken extends Place> {
  readonly redis: Redis;
  /** All slots of a full worker; empty while it has room. */
  readonly places: () => readonly Taken[];
  readonly putBack: (place: Taken) => void;
  readonly logger: Logger;
}

/** Polls for jobs whose message was lost. */
const LOOK_EVERY_MS = 1000;
/** How long a job waits for its key's second slot; the first is given at once. */
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

  /** Call for each accepted job. */
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
    // Checked again after waiting for Redis.
    const place = placeFor(waiting, places(), redisNow());
    if (place !== undefined) putBack(place);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Returns how many slots a key holds. */
function holdings(places: readonly Place[]): (tenant: string) => number {
  const held = Map.groupBy(places, ({ tenant }) => tenant);
  return (tenant) => held.get(tenant)?.length ?? 0;
}

/** Splits keys into those with their share and those below it; undefined if no slot can move. */
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
 * Waiting keys' slots differ by at most one: each gets an equal share, rounded up or down.
 * @returns the job to put back: served last, of the key that holds most
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
