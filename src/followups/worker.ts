/**
 * The engine of all follow-ups; a `FollowUpKind` supplies their behavior. An attempt cut off by the
 * death of its process is repeated when its lock expires, so a receiver can get an event twice.
 */
import { DelayedError, type Job, UnrecoverableError, WaitingError, type Worker } from 'bullmq';
import { redisNow } from 'soundpost-kit/redis/clock';
import { UnreadableRecord, withEdition } from 'soundpost-kit/redis/record';
import { CHANGE_CHANNEL } from '../jobs/names.ts';
import {
  AttemptFailed,
  awayNow,
  closeWorker,
  openWorker,
  throughAway,
  type WorkerSettings,
} from '../jobs/open-worker.ts';
import { readPayload } from '../jobs/payloads.ts';
import { type FollowUpKind, type Lane, type Tried, tryOnce } from './kind.ts';
import { Lanes } from './lanes.ts';
import { TryPlaces, type Turn } from './places.ts';
import type { FollowUpQueue } from './queue.ts';

interface FollowUpWorkerOptions<Payload, Ready, Result> extends WorkerSettings {
  /** The follow-ups' queue. The caller closes it. */
  readonly queue: FollowUpQueue;
  /** By the job's name. */
  readonly kindOf: (jobName: string) => FollowUpKind<Payload, Ready, Result>;
  /** Whether no other process consumes the queue, as kinds with lanes require. */
  readonly isAlone: boolean;
  /** Concurrent attempts in this process, for all keys and hosts. */
  readonly concurrency: number;
}

/** What callers see of an attempt that failed through our fault. */
const OWN_FAULT = 'the service could not make this attempt';

class TryAgain extends AttemptFailed {
  readonly delayMs: number;
  constructor(message: string, delayMs: number) {
    super(message);
    this.delayMs = delayMs;
  }
}

export class FollowUpWorker<Payload, Ready, Result extends object> {
  readonly #options: FollowUpWorkerOptions<Payload, Ready, Result>;
  readonly #worker: Worker;
  readonly #lanes: Lanes;
  readonly #places: TryPlaces;
  readonly #closing = new AbortController();

  private constructor(options: FollowUpWorkerOptions<Payload, Ready, Result>) {
    const { queue, redis } = options;
    const promote = (jobId: string) => queue.promote(jobId);
    this.#options = options;
    this.#lanes = new Lanes(promote);
    this.#places = new TryPlaces(redis, promote);
    this.#worker = openWorker(queue.name, (job, token = '') => this.#process(job, token), options, {
      // A sole consumer takes over its lanes first.
      autorun: !options.isAlone,
      concurrency: options.concurrency,
      settings: { backoffStrategy: (_tries, _type, error, job) => this.#backoffMs(error, job) },
    });
    // Only now: follow-ups must not overtake in Redis, and watchers of a job read its record.
    this.#worker.on('completed', (job) => this.#onEnd(job, true));
    this.#worker.on('failed', (job) => job && this.#onEnd(job, false));
  }

  static async start<Payload, Ready, Result extends object>(
    options: FollowUpWorkerOptions<Payload, Ready, Result>,
  ): Promise<FollowUpWorker<Payload, Ready, Result>> {
    const worker = new FollowUpWorker(options);
    if (options.isAlone) {
      await worker.#takeOverLanes();
      worker.#worker.run().catch((error: Error) => worker.#worker.emit('error', error));
    }
    return worker;
  }

  /** Starts no more attempts; after `graceMs` aborts running ones, which others then repeat. */
  async close(graceMs: number): Promise<void> {
    const giveUp = (): void => this.#closing.abort(new Error('interrupted by a shutdown'));
    await closeWorker(this.#worker, graceMs, giveUp);
  }

  async #process(job: Job, token: string): Promise<object | undefined> {
    const kind = this.#options.kindOf(job.name);
    const payload = readPayload(kind.payload, job.data);
    const jobId = job.id ?? '';
    if ((await kind.isWanted?.(payload)) === false) {
      job.opts.removeOnComplete = true;
      return undefined;
    }
    const park = (ms: number) => job.moveToDelayed(redisNow() + ms, token);
    const lane = kind.lane?.(payload);
    if (lane !== undefined && !this.#lanes.enter(lane, jobId)) {
      await this.#lanes.wait(lane, jobId, park);
      throw new DelayedError();
    }
    const turn = await kind.turn?.(payload, triesOf(job) > 0);
    if (turn !== undefined && !(await this.#places.take({ ...turn, jobId }, park))) {
      throw new DelayedError();
    }
    const tried = await this.#inTurn(turn, jobId, () => this.#try(kind, payload, job)).catch(
      async (error: unknown) => {
        if (!this.#closing.signal.aborted) throw error;
        // Uses up no attempt.
        await job.moveToWait(token);
        throw new WaitingError();
      },
    );
    switch (tried.outcome) {
      case 'done':
        return withEdition(tried.result);
      case 'step':
        // Behind the waiting ones: a long delivery must not hold a slot for hours.
        await park(0);
        throw new DelayedError();
      case 'retry':
        throw new TryAgain(tried.error, tried.delayMs);
      case 'final':
        throw new UnrecoverableError(tried.error);
    }
  }

  async #inTurn<T extends Pick<Tried<Result>, 'httpStatus'>>(
    turn: Turn | undefined,
    jobId: string,
    attempt: () => Promise<T>,
  ): Promise<T> {
    let httpStatus: T['httpStatus'];
    try {
      const tried = await attempt();
      httpStatus = tried.httpStatus;
      return tried;
    } finally {
      // A failure to free the slot must not repeat the attempt: the slot expires.
      if (turn !== undefined) await this.#places.leave({ ...turn, jobId }, httpStatus).catch(() => undefined);
    }
  }

  /** Makes an attempt, logs it, and adds what comes next. */
  async #try(kind: FollowUpKind<Payload, Ready, Result>, payload: Payload, job: Job) {
    const { signal } = this.#closing;
    const number = triesOf(job) + 1;
    const attempt = { number, last: kind.schedule(number, 0) === undefined };
    const startedMs = Date.now();
    const startedAt = performance.now();
    const { queue, probes, logger } = this.#options;
    const fault = async (error: Error): Promise<Tried<Result>> => {
      signal.throwIfAborted();
      if (error instanceof UnreadableRecord) throw error;
      if ((await awayNow(error, probes)) !== undefined) throw error;
      logger.warn({ queue: queue.name, id: job.id, err: error }, 'a try failed by a fault of our own');
      return { outcome: 'retry', error: OWN_FAULT };
    };
    const tried = await tryOnce(kind, payload, attempt, signal).catch(fault);
    const { httpStatus = null, error = null, latencyMs = Math.round(performance.now() - startedAt) } = tried;
    const delayMs =
      tried.outcome === 'retry' ? kind.schedule(number, tried.retryAfterSeconds ?? 0) : undefined;
    if (kind.logSeconds !== undefined) {
      const nextAtMs = delayMs === undefined ? undefined : Date.now() + delayMs;
      const entry = { at: new Date(startedMs).toISOString(), httpStatus, latencyMs, error, nextAtMs };
      await queue.log.add(job.id ?? '', entry, kind.logSeconds).catch((cause: Error) =>
        // A lost log entry must not cause a resend.
        logger.warn({ error: cause.message }, 'a try could not be logged'),
      );
    }
    // It was made: what follows must not have it made again.
    if (tried.outcome === 'done') {
      await throughAway(
        async () => kind.ended?.(payload, tried.result, attempt),
        () => signal.aborted,
      );
    }
    // Attempts are counted anew from here.
    if (tried.outcome === 'step' && number > 1) {
      await job.updateData({ ...job.data, triesBefore: job.attemptsMade });
    }
    if (tried.outcome !== 'retry') return tried;
    return delayMs === undefined ? { ...tried, outcome: 'final' as const } : { ...tried, delayMs };
  }

  /** Reschedules failures outside of an attempt. -1 ends the attempts. */
  #backoffMs(error: unknown, job: Pick<Job, 'name' | 'data' | 'attemptsMade'> | undefined): number {
    if (error instanceof TryAgain || job === undefined) {
      return error instanceof TryAgain ? error.delayMs : -1;
    }
    return this.#options.kindOf(job.name).schedule(triesOf(job) + 1, 0) ?? -1;
  }

  #onEnd(job: Job, isDone: boolean): void {
    const { kindOf, redis, queue, logger } = this.#options;
    const kind = kindOf(job.name);
    const payload = payloadIn(kind, job.data);
    if (payload === undefined) return;
    // Otherwise another attempt follows.
    const hasEnded = isDone || job.finishedOn !== undefined;
    const lane = kind.lane?.(payload);
    if (lane !== undefined && (hasEnded || lane.until === 'first try')) {
      this.#lanes.leave(lane.name, job.id ?? '');
    }
    if (!hasEnded) return;
    const after = async (): Promise<void> => {
      const attempt = { number: triesOf(job), last: true };
      if (!isDone) await kind.ended?.(payload, undefined, attempt);
      const jobId = kind.jobOf?.(payload);
      await Promise.all([jobId && redis.publish(CHANGE_CHANNEL, jobId), kind.tidy?.(payload)]);
    };
    after().catch((error: Error) => logger.warn({ error: error.message }, `after a ${queue.name}`));
  }

  /** Reserves each lane for its first job, whatever state the previous process left. */
  async #takeOverLanes(): Promise<void> {
    const { queue, kindOf } = this.#options;
    const waiting: { id: string; isParked: boolean; isNew: boolean; lane: Lane }[] = [];
    for await (const stored of queue.unfinished()) {
      const kind = kindOf(stored.name);
      const payload = payloadIn(kind, stored.data);
      const lane = payload === undefined ? undefined : kind.lane?.(payload);
      const isNew = stored.tries === 0;
      if (lane !== undefined && (isNew || lane.until === 'end')) {
        waiting.push({ id: stored.id, isParked: stored.isDelayed, isNew, lane });
      }
    }
    waiting.sort((one, other) => (one.lane.order < other.lane.order ? -1 : 1));
    for (const { id, isParked, isNew, lane } of waiting) {
      const isNext = this.#lanes.enter(lane, id);
      if (isNext && isParked && isNew) {
        await queue.promote(id);
      } else if (!isNext && isParked) {
        await this.#lanes.wait(lane, id, async () => undefined);
      }
    }
  }
}

/** Undefined if this version cannot read it. */
function payloadIn<Payload>(
  { payload }: Pick<FollowUpKind<Payload, never, never>, 'payload'>,
  data: unknown,
): Payload | undefined {
  try {
    return readPayload(payload, data);
  } catch {
    return undefined;
  }
}

/** Completed attempts since the last step. */
function triesOf({ data, attemptsMade }: Pick<Job, 'data' | 'attemptsMade'>): number {
  return attemptsMade - Number(data.triesBefore ?? 0);
}
