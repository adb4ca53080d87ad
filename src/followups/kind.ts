/** What the engine knows of a kind of follow-up, of a job or of an event of the gateway, and the schedules that kinds have. */
import type { z } from 'zod';
import type { Turn } from './places.ts';

export interface Attempt {
  /** 1 for the first; after a step it counts anew. */
  readonly number: number;
  /** No further try follows this one. */
  readonly last: boolean;
}

/** What became of a try. */
export type Tried<Result> = (
  | { readonly outcome: 'done'; readonly result: Result; readonly error?: string }
  /** A part is done, and there are others. */
  | { readonly outcome: 'step'; readonly error?: undefined }
  | { readonly outcome: 'retry'; readonly error: string; readonly retryAfterSeconds?: number | undefined }
  | { readonly outcome: 'final'; readonly error: string }
) & {
  /** Undefined or null: no answer came. */
  readonly httpStatus?: number | null | undefined;
  /** Of the exchange alone; default: of the whole try. */
  readonly latencyMs?: number;
  /** What it says of the host: one that answers 4xx works. Undefined: nothing. */
  readonly host?: 'answered' | 'failed';
};

/** What is in one lane is tried one at a time, in its order. */
export interface Lane {
  readonly name: string;
  /** Compared as text. */
  readonly order: string;
  /** Until when the others wait: for the first try, or until it is delivered or has failed. */
  readonly until: 'first try' | 'end';
}

export interface FollowUpKind<Payload, Ready, Result> {
  readonly payload: z.ZodType<Payload>;
  /** Asked before each try, so that what was set meanwhile holds. An end: nothing is tried. */
  readonly prepare: (payload: Payload) => Promise<Prepared<Ready, Result>>;
  /** Rejects when `signal` aborts, with nothing spent. */
  readonly try: (
    ready: Ready,
    payload: Payload,
    attempt: Attempt,
    signal: AbortSignal,
  ) => Promise<Tried<Result>>;
  readonly schedule: Schedule;
  /** Undefined where it is tried at once. */
  readonly turn?: (payload: Payload) => Promise<Turn | undefined>;
  /** Undefined where none waits for another. */
  readonly lane?: (payload: Payload) => Lane;
  /**
   * Adds what follows in turn. Of a result before the end counts: after a crash it is added again,
   * under the same id.
   * @param result undefined: no try is left. Then the end stands in the record already, which is
   *   what a webhook reads, and a crash between the two loses what follows
   */
  readonly ended?: (payload: Payload, result: Result | undefined, attempt: Attempt) => Promise<unknown>;
  /** Whose change is published when the end stands in the record. */
  readonly jobOf?: (payload: Payload) => string;
  /** Removes what is of no use after the end. */
  readonly tidy?: (payload: Payload) => Promise<unknown>;
  /** How long the log of tries is kept; undefined keeps none. */
  readonly logSeconds?: number;
}

type Prepared<Ready, Result> = { readonly ready: Ready } | Tried<Result>;

/** @throws the signal's reason when that aborts */
export async function tryOnce<Payload, Ready, Result>(
  kind: Pick<FollowUpKind<Payload, Ready, Result>, 'prepare' | 'try'>,
  payload: Payload,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<Tried<Result>> {
  const prepared = await kind.prepare(payload);
  signal.throwIfAborted();
  return 'ready' in prepared ? kind.try(prepared.ready, payload, attempt, signal) : prepared;
}

/**
 * @param tries those that have ended, 1 or more
 * @param retryAfterSeconds what the receiver asked for, 0 where it did not
 * @returns ms from the end of the last try to the next; undefined when there is none
 */
type Schedule = (tries: number, retryAfterSeconds: number) => number | undefined;

/**
 * Ten tries over an hour (decisions C), seconds after the first. The second comes when the lease of
 * a gateway that died has run out (6 s, packages/kit/src/http/idempotency.ts): earlier it would
 * hear that the first one is still running.
 */
export const VOICE_SCHEDULE_SECONDS = [0, 8, 20, 60, 180, 420, 900, 1500, 2400, 3600] as const;
/** Three tries, as of a download: seconds after the first. */
export const PUT_SCHEDULE_SECONDS = [0, 1, 3] as const;

const LONGEST_RETRY_AFTER_SECONDS = 60 * 60;
/** Up to this part of a delay is added, so that not everybody meets a receiver that comes back. */
const JITTER = 0.1;
const DOUBLING_JITTER = 0.25;

/**
 * As many tries as entries, seconds, at the distances between them: counted from the event, an
 * outage of ours would use up all tries at once. A receiver may ask for more patience.
 */
export function scheduled(seconds: readonly number[]): Schedule {
  return (tries, retryAfterSeconds) =>
    tries < seconds.length ? retryDelayMs(seconds, tries, retryAfterSeconds) : undefined;
}

function retryDelayMs(scheduleSeconds: readonly number[], tries: number, retryAfterSeconds: number): number {
  const distance = (scheduleSeconds[tries] ?? 0) - (scheduleSeconds[tries - 1] ?? 0);
  const seconds = Math.max(distance, Math.min(retryAfterSeconds, LONGEST_RETRY_AFTER_SECONDS));
  return Math.round(seconds * 1000 * (1 + Math.random() * JITTER));
}

/** Twice the distance each time, up to the longest one. */
export function doubling(options: {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly tries: number;
}): Schedule {
  const { firstMs, longestMs, tries: most } = options;
  return (tries) =>
    tries >= most
      ? undefined
      : Math.round(
          Math.min(firstMs * 2 ** Math.min(tries - 1, 30), longestMs) * (1 + Math.random() * DOUBLING_JITTER),
        );
}
