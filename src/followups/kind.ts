/** A kind of follow-up, as the engine sees it, and the kinds' schedules. */
import type { z } from 'zod';
import type { Turn } from './places.ts';

export interface Attempt {
  /** Starts at 1, again after each step. */
  readonly number: number;
  /** No attempt follows. */
  readonly last: boolean;
}

/** The outcome of an attempt. */
export type Tried<Result> = (
  | { readonly outcome: 'done'; readonly result: Result; readonly error?: string }
  /** A part is done, and more remain; or all begins anew. */
  | { readonly outcome: 'step'; readonly error?: string }
  | { readonly outcome: 'retry'; readonly error: string; readonly retryAfterSeconds?: number | undefined }
  | { readonly outcome: 'final'; readonly error: string }
) & {
  /** Null: the receiver gave no answer. Undefined: it was not asked, or did not speak HTTP. */
  readonly httpStatus?: number | null | undefined;
  /** Duration of the exchange only; default: of the whole attempt. */
  readonly latencyMs?: number;
};

/** A lane's deliveries are attempted one at a time, in order. */
export interface Lane {
  readonly name: string;
  /** Compared as text. */
  readonly order: string;
  /** How long the others wait: until the first attempt, or until delivery or failure. */
  readonly until: 'first try' | 'end';
}

export interface FollowUpKind<Payload, Ready, Result> {
  readonly payload: z.ZodType<Payload>;
  /** False if it was never accepted: it is removed without a trace. Default: true. */
  readonly isWanted?: (payload: Payload) => Promise<boolean>;
  /** Called before each attempt, so that settings are current. An end skips the attempt. */
  readonly prepare: (payload: Payload) => Promise<Prepared<Ready, Result>>;
  /** Rejects when `signal` aborts, without using up an attempt. */
  readonly try: (
    ready: Ready,
    payload: Payload,
    attempt: Attempt,
    signal: AbortSignal,
  ) => Promise<Tried<Result>>;
  readonly schedule: Schedule;
  /** Undefined if it needs no slot. */
  readonly turn?: (payload: Payload, isRetried: boolean) => Promise<Turn | undefined>;
  /** Undefined if deliveries do not wait for one another. */
  readonly lane?: (payload: Payload) => Lane;
  /**
   * Adds what comes next. Called with a result before the end is recorded: after a crash it is
   * added again, under the same id.
   * @param result undefined: no attempt is left. Then the end is already recorded, for a webhook to
   *   read, and a crash in between loses what comes next
   */
  readonly ended?: (payload: Payload, result: Result | undefined, attempt: Attempt) => Promise<unknown>;
  /** The job whose change is published once the end is recorded. */
  readonly jobOf?: (payload: Payload) => string;
  /** Removes what is useless after the end. */
  readonly tidy?: (payload: Payload) => Promise<unknown>;
  /** How long the log of attempts is kept; undefined keeps none. */
  readonly logSeconds?: number;
}

type Prepared<Ready, Result> = { readonly ready: Ready } | Tried<Result>;

/** @throws the signal's reason when it aborts */
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
 * @param tries completed attempts, 1 or more
 * @param retryAfterSeconds as the receiver asked, or 0
 * @returns ms from the end of the last attempt to the next; undefined if none follows
 */
type Schedule = (tries: number, retryAfterSeconds: number) => number | undefined;

/**
 * Ten attempts over an hour (decisions C), in seconds after the first. The second comes after a
 * dead gateway's lease has expired (6 s, packages/kit/src/http/idempotency.ts): earlier, the
 * gateway would report the first as still running.
 */
export const VOICE_SCHEDULE_SECONDS = [0, 8, 20, 60, 180, 420, 900, 1500, 2400, 3600] as const;

const LONGEST_RETRY_AFTER_SECONDS = 60 * 60;
/** Adds up to this share of a delay, so that a recovered receiver is not hit all at once. */
const JITTER = 0.1;
const DOUBLING_JITTER = 0.25;

/**
 * One attempt per entry, at the intervals between the entries in seconds: relative to the event,
 * our own outage would use up all attempts. A receiver can ask for a longer delay.
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

/** Doubles the delay each time, up to the longest. */
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
