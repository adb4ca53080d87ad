/**
 * The one engine that delivers webhooks, on a queue of BullMQ: whose they are is a `DeliveryKind`. A try that was cut off
 * by the death of its process is made again when its lock has run out, so a receiver may hear of an event twice.
 */
import { DelayedError, type Job, UnrecoverableError, WaitingError, type Worker } from 'bullmq';
import { redisNow } from 'soundpost-kit/redis/clock';
import { closeWorker, openWorker, type WorkerSettings } from '../jobs/open-worker.ts';
import { type Claim, TryPlaces } from '../jobs/try-places.ts';
import { DeliveryData, type DeliveryKind, type Lane } from './delivery-kind.ts';
import type { DeliveryQueue, StoredDelivery } from './delivery-queue.ts';
import { type TryOutcome, tryDelivery } from './delivery-try.ts';
import { Lanes } from './lanes.ts';

interface DeliveryWorkerOptions extends WorkerSettings {
  /** Holds what is delivered. The caller closes it. */
  readonly queue: DeliveryQueue;
  /** Of a job, by its name. */
  readonly kindOf: (jobName: string) => DeliveryKind;
  /** Whether no other process consumes the queue: kinds with lanes need it. */
  readonly isAlone: boolean;
  /** Tries at a time, of all keys and hosts together. */
  readonly concurrency: number;
}

/** Under way at once in all processes; a try takes 15 s at most, and its preparation little. */
const PLACES = { perKey: 16, perHost: 8, leaseMs: 30_000 };

class TryAgain extends Error {
  readonly delayMs: number;
  constructor(message: string, delayMs: number) {
    super(message);
    this.delayMs = delayMs;
  }
}

export class DeliveryWorker {
  readonly #options: DeliveryWorkerOptions;
  readonly #worker: Worker;
  readonly #lanes: Lanes;
  readonly #places: TryPlaces;
  readonly #closing = new AbortController();

  private constructor(options: DeliveryWorkerOptions) {
    const { queue, redis } = options;
    const promote = (jobId: string) => queue.promote(jobId);
    this.#options = options;
    this.#lanes = new Lanes(promote);
    this.#places = new TryPlaces({ ...PLACES, redis, name: queue.name, promote });
    this.#worker = openWorker(queue.name, (job, token = '') => this.#deliver(job, token), options, {
      autorun: false,
      concurrency: options.concurrency,
      settings: { backoffStrategy: (_tries, _type, error, job) => this.#backoffMs(error, job) },
    });
    // Only now: what comes next must not overtake in Redis either.
    this.#worker.on('completed', (job) => this.#leaveLane(job, true));
    this.#worker.on('failed', (job) => job && this.#leaveLane(job, job.finishedOn !== undefined));
  }

  static async start(options: DeliveryWorkerOptions): Promise<DeliveryWorker> {
    const worker = new DeliveryWorker(options);
    if (options.isAlone) {
      await worker.#takeOverLanes();
    }
    worker.#worker.run().catch((error: Error) => worker.#worker.emit('error', error));
    return worker;
  }

  /** Begins no try any more. Those under way have `graceMs`; then they are broken off, and made again by whoever comes next. */
  async close(graceMs: number): Promise<void> {
    const giveUp = (): void => this.#closing.abort(new Error('the delivery was interrupted by a shutdown'));
    await closeWorker(this.#worker, graceMs, giveUp);
  }

  async #deliver(job: Job, token: string): Promise<object> {
    const { kindOf, redis, logger } = this.#options;
    const { signal } = this.#closing;
    const kind = kindOf(job.name);
    const data = DeliveryData.parse(job.data);
    const jobId = job.id ?? '';
    const lane = kind.laneOf?.(data);
    if (lane !== undefined && !this.#lanes.enter(lane, jobId)) {
      await this.#lanes.wait(lane, jobId, (ms) => job.moveToDelayed(redisNow() + ms, token));
      throw new DelayedError();
    }
    const attempt = () => tryDelivery(kind, data, job.attemptsMade, { redis, logger, signal });
    const turn = await kind.turnOf?.(data);
    const park = (ms: number) => job.moveToDelayed(redisNow() + ms, token);
    const tried = await this.#inTurn(turn && { ...turn, jobId }, park, attempt).catch(
      async (error: unknown) => {
        if (error !== signal.reason) {
          throw error;
        }
        await job.moveToWait(token);
        throw new WaitingError();
      },
    );
    switch (tried.outcome) {
      case 'delivered':
        return { status: tried.status };
      case 'again':
        throw new TryAgain(tried.error, tried.delayMs);
      case 'failed':
        throw new UnrecoverableError(tried.error);
    }
  }

  async #inTurn(
    claim: Claim | undefined,
    park: (ms: number) => Promise<unknown>,
    attempt: () => Promise<TryOutcome>,
  ): Promise<TryOutcome> {
    if (claim === undefined) {
      return attempt();
    }
    if (!(await this.#places.take(claim, park))) {
      throw new DelayedError();
    }
    let host: TryOutcome['host'];
    try {
      const tried = await attempt();
      host = tried.host;
      return tried;
    } finally {
      // What was tried is not tried again because its place could not be given back: that runs out.
      await this.#places.leave(claim, host).catch(() => undefined);
    }
  }

  /** What failed by our own fault is made again as if the receiver had refused it. -1 ends the tries. */
  #backoffMs(error: unknown, job: Pick<Job, 'name' | 'attemptsMade'> | undefined): number {
    if (error instanceof TryAgain || job === undefined) {
      return error instanceof TryAgain ? error.delayMs : -1;
    }
    return this.#options.kindOf(job.name).schedule(job.attemptsMade + 1, 0) ?? -1;
  }

  #leaveLane(job: Job, hasEnded: boolean): void {
    const lane = this.#options.kindOf(job.name).laneOf?.(DeliveryData.parse(job.data));
    if (lane !== undefined && (hasEnded || lane.until === 'first try')) {
      this.#lanes.leave(lane.name, job.id ?? '');
    }
  }

  /** Reserves each lane for the first of those that have it or wait for it, wherever the process before left them. */
  async #takeOverLanes(): Promise<void> {
    const waiting: { stored: StoredDelivery; lane: Lane }[] = [];
    for await (const stored of this.#options.queue.unfinished()) {
      const lane = this.#options.kindOf(stored.name).laneOf?.(stored.data);
      if (lane !== undefined && (stored.tries === 0 || lane.until === 'end')) {
        waiting.push({ stored, lane });
      }
    }
    waiting.sort((one, other) => (one.lane.order < other.lane.order ? -1 : 1));
    for (const {
      stored: { id, isDelayed, tries },
      lane,
    } of waiting) {
      const isNext = this.#lanes.enter(lane, id);
      if (isNext && isDelayed && tries === 0) {
        await this.#options.queue.promote(id);
      } else if (!isNext && isDelayed) {
        await this.#lanes.wait(lane, id, async () => undefined);
      }
    }
  }
}
