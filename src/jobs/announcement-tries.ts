/** One try to tell somebody, and when the next one follows. */
import { type BackoffStrategy, type Job, UnrecoverableError } from 'bullmq';
import { z } from 'zod';

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

/** @param tries of one thing; default those of the job */
export async function tell<Payload, Result>(
  job: Job,
  payload: Payload,
  handler: (payload: Payload, attempt: Try) => Promise<Announced<Result>>,
  tries = job.opts.attempts ?? 1,
): Promise<Result> {
  const number = triesOf(job, job.attemptsMade) + 1;
  const announced = await handler(payload, { number, last: number >= tries });
  if (announced.outcome === 'done') {
    return announced.result;
  }
  throw announced.outcome === 'final'
    ? new UnrecoverableError(announced.error)
    : new TryAgain(announced.error, announced.retryAfterSeconds);
}

/** In the data of a job that gets on by steps: the tries that have ended before the last one. They count anew from there. */
const Progressed = z.object({ triesBefore: z.int().min(0).default(0) });

function triesOf({ data }: Pick<Job, 'data'>, attemptsMade: number): number {
  return attemptsMade - Progressed.parse(data).triesBefore;
}

/** The job has made a step: the tries before it count no more. */
export async function forgetTries(job: Job): Promise<void> {
  if (triesOf(job, job.attemptsMade) > 0)
    await job.updateData({ ...job.data, triesBefore: job.attemptsMade });
}

/** The next try comes by {@link retryDelayMs}. */
export function scheduleBackoff(scheduleSeconds: readonly number[]): BackoffStrategy {
  return (attemptsMade, _type, error, job) =>
    retryDelayMs(
      scheduleSeconds,
      job === undefined ? attemptsMade : triesOf(job, attemptsMade),
      error instanceof TryAgain ? error.retryAfterSeconds : 0,
    );
}

/**
 * From the end of one try to the next: the distance between their entries in the schedule, and at least the receiver's Retry-After. Counted
 * from the event, an outage of ours would use up all tries at once. Past its end the schedule goes on at its last distance.
 * @param tries those that have ended, 1 or more
 * @returns ms
 */
export function retryDelayMs(
  scheduleSeconds: readonly number[],
  tries: number,
  retryAfterSeconds: number,
): number {
  const next = Math.min(tries, scheduleSeconds.length - 1);
  const distance = (scheduleSeconds[next] ?? 0) - (scheduleSeconds[next - 1] ?? 0);
  const seconds = Math.max(distance, Math.min(retryAfterSeconds, LONGEST_RETRY_AFTER_SECONDS));
  return Math.round(seconds * 1000 * (1 + Math.random() * JITTER));
}
