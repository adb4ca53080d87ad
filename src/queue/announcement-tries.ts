/** One try to tell somebody, and when the next one follows. */
import { type BackoffStrategy, type Job, type MinimalJob, UnrecoverableError } from 'bullmq';

/** What became of one try. */
export type Announced<Result> =
  | { readonly outcome: 'done'; readonly result: Result }
  | { readonly outcome: 'retry'; readonly error: string; readonly retryAfterSeconds?: number | undefined }
  | { readonly outcome: 'final'; readonly error: string };

export interface Try {
  /** 1 for the first. */
  readonly number: number;
  /** No further try follows this one. */
  readonly last: boolean;
}

const LONGEST_RETRY_AFTER_SECONDS = 60 * 60;
/** Up to this part of a delay is added to it, so that a receiver that comes back is not met by everybody at once. */
const JITTER = 0.1;

class TryAgain extends Error {
  readonly retryAfterSeconds: number;
  constructor(message: string, retryAfterSeconds = 0) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export async function tell<Payload, Result>(
  job: Job,
  payload: Payload,
  handler: (payload: Payload, attempt: Try) => Promise<Announced<Result>>,
): Promise<Result> {
  const number = job.attemptsMade + 1;
  const announced = await handler(payload, {
    number,
    last: number >= (job.opts.attempts ?? 1),
  });
  if (announced.outcome === 'done') {
    return announced.result;
  }
  throw announced.outcome === 'final'
    ? new UnrecoverableError(announced.error)
    : new TryAgain(announced.error, announced.retryAfterSeconds);
}

/** The n-th retry comes by {@link retryDelayMs}, counted from the event. */
export function scheduleBackoff(
  scheduleSeconds: readonly number[],
  eventTimeMs: (job: MinimalJob) => number,
): BackoffStrategy {
  return (attemptsMade, _type, error, job) => {
    if (job === undefined) {
      throw new Error('a scheduled retry needs its job');
    }
    const retryAfterSeconds = error instanceof TryAgain ? error.retryAfterSeconds : 0;
    return retryDelayMs(scheduleSeconds, eventTimeMs(job), attemptsMade, retryAfterSeconds);
  };
}

/**
 * The n-th retry comes at the n-th entry of the schedule (entry 0 is the first try), counted from `fromMs`, and not
 * before the receiver's Retry-After.
 */
export function retryDelayMs(
  scheduleSeconds: readonly number[],
  fromMs: number,
  tries: number,
  retryAfterSeconds: number,
): number {
  const slot = scheduleSeconds[Math.min(tries, scheduleSeconds.length - 1)] ?? 0;
  const delayMs = Math.max(0, fromMs + slot * 1000 - Date.now());
  const retryAfterMs = Math.min(retryAfterSeconds, LONGEST_RETRY_AFTER_SECONDS) * 1000;
  return Math.round(Math.max(delayMs, retryAfterMs) * (1 + Math.random() * JITTER));
}
