/** One try to tell somebody, and when the next one follows. */
import { type BackoffStrategy, type Job, UnrecoverableError } from 'bullmq';

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

/** The next try comes by {@link retryDelayMs}. */
export function scheduleBackoff(scheduleSeconds: readonly number[]): BackoffStrategy {
  return (attemptsMade, _type, error) =>
    retryDelayMs(scheduleSeconds, attemptsMade, error instanceof TryAgain ? error.retryAfterSeconds : 0);
}

/**
 * From the end of one try to the next: the distance between their entries in the schedule, and at least the receiver's Retry-After. Counted
 * from the event, an outage of ours would use up all tries at once.
 * @param tries those that have ended, 1 or more
 * @returns ms
 */
export function retryDelayMs(
  scheduleSeconds: readonly number[],
  tries: number,
  retryAfterSeconds: number,
): number {
  const last = scheduleSeconds[tries - 1] ?? 0;
  const distance = (scheduleSeconds[tries] ?? last) - last;
  const seconds = Math.max(distance, Math.min(retryAfterSeconds, LONGEST_RETRY_AFTER_SECONDS));
  return Math.round(seconds * 1000 * (1 + Math.random() * JITTER));
}
