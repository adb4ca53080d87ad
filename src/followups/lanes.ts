/**
 * Lanes, in which deliveries are attempted one at a time and in order. A waiting delivery frees its
 * worker slot: its job is delayed, and promoted in its turn. So a hanging receiver blocks a single
 * slot, however much waits for it. Lanes live in one process, which must be the queue's only
 * consumer.
 */
import type { Lane } from './kind.ts';

interface Waiting {
  readonly order: string;
  /** Resolves once the job is delayed and can be promoted. */
  readonly parked: Promise<unknown>;
}

interface LaneState {
  /** The job being attempted, or the next one. */
  holder: string;
  readonly waiting: Map<string, Waiting>;
}

/** Without promotion a job returns by itself; for a lane at most three per second. */
const PATIENCE_MS = 30_000;
const PATIENCE_PER_JOB_MS = 300;

export class Lanes {
  readonly #lanes = new Map<string, LaneState>();
  readonly #promote: (jobId: string) => Promise<boolean>;

  /** @param promote ends a job's delay; answers false if the job is gone */
  constructor(promote: (jobId: string) => Promise<boolean>) {
    this.#promote = promote;
  }

  /** Whether it is the job's turn, which lasts until `leave`; otherwise it must `wait`. */
  enter({ name }: Lane, jobId: string): boolean {
    const lane = this.#lanes.get(name);
    if (lane === undefined) {
      this.#lanes.set(name, { holder: jobId, waiting: new Map() });
    }
    return lane === undefined || lane.holder === jobId;
  }

  /** Call at once after `enter` refused. @param park delays the job by this many ms */
  wait({ name, order }: Lane, jobId: string, park: (ms: number) => Promise<unknown>): Promise<unknown> {
    const waiting = this.#lanes.get(name)?.waiting;
    const parked = park(PATIENCE_MS + PATIENCE_PER_JOB_MS * (waiting?.size ?? 0));
    waiting?.set(jobId, { order, parked });
    return parked;
  }

  /** Gives the lane to the first waiting job. */
  leave(name: string, jobId: string): void {
    const lane = this.#lanes.get(name);
    if (lane?.holder !== jobId) {
      return;
    }
    const next = firstOf(lane.waiting);
    if (next === undefined) {
      this.#lanes.delete(name);
      return;
    }
    lane.waiting.delete(next.jobId);
    lane.holder = next.jobId;
    next.parked
      .then(() => this.#promote(next.jobId))
      .then(
        (isThere) => isThere || this.leave(name, next.jobId),
        // It returns by itself after its delay.
        () => undefined,
      );
  }
}

function firstOf(waiting: ReadonlyMap<string, Waiting>): ({ readonly jobId: string } & Waiting) | undefined {
  let first: ({ readonly jobId: string } & Waiting) | undefined;
  for (const [jobId, { order, parked }] of waiting) {
    if (first === undefined || order < first.order) {
      first = { jobId, order, parked };
    }
  }
  return first;
}
