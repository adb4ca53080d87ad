/**
 * Lanes in which deliveries are tried one after the other, in their order. One that has to wait
 * gives its place in the worker back: its job is delayed, and promoted when its turn comes. So a
 * receiver that hangs keeps one place busy, however much waits for it. Lanes live in one process:
 * whoever consumes the queue has to be alone.
 */
import type { Lane } from './kind.ts';

interface Waiting {
  readonly order: string;
  /** Resolves when the job is delayed, so that it can be promoted. */
  readonly parked: Promise<unknown>;
}

interface LaneState {
  /** The job that is being tried, or is to come next. */
  holder: string;
  readonly waiting: Map<string, Waiting>;
}

/** If nobody promotes a job, it comes by itself: of a lane three a second at most. */
const PATIENCE_MS = 30_000;
const PATIENCE_PER_JOB_MS = 300;

export class Lanes {
  readonly #lanes = new Map<string, LaneState>();
  readonly #promote: (jobId: string) => Promise<boolean>;

  /** @param promote ends the delay of a job; answers false when there is no such job any more */
  constructor(promote: (jobId: string) => Promise<boolean>) {
    this.#promote = promote;
  }

  /** Whether it is the job's turn, which it keeps until `leave`; otherwise it has to `wait`. */
  enter({ name }: Lane, jobId: string): boolean {
    const lane = this.#lanes.get(name);
    if (lane === undefined) {
      this.#lanes.set(name, { holder: jobId, waiting: new Map() });
    }
    return lane === undefined || lane.holder === jobId;
  }

  /** Called at once after `enter` said no. @param park delays the job by so many ms */
  wait({ name, order }: Lane, jobId: string, park: (ms: number) => Promise<unknown>): Promise<unknown> {
    const waiting = this.#lanes.get(name)?.waiting;
    const parked = park(PATIENCE_MS + PATIENCE_PER_JOB_MS * (waiting?.size ?? 0));
    waiting?.set(jobId, { order, parked });
    return parked;
  }

  /** Gives the lane to the first of those that wait. */
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
        // It comes by itself when its delay is over.
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
