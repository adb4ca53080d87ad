/**
 * How long each step may take, whatever it waits for. These bounds are the last: a download has its minimum rate, a run of ffmpeg its
 * progress and its own limit, which end sooner and know better whose fault it was.
 */
import { deadline, within } from 'soundpost-base/deadline';
import { ServiceError } from 'soundpost-contract/errors';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** What an operator sees of a step in the log and a caller in the failure, and its limit. */
const limits = {
  download: { does: 'downloading', limitMs: 2 * HOUR + 10 * MINUTE },
  analyze: { does: 'analyzing', limitMs: 10 * MINUTE },
  extract: { does: 'extracting', limitMs: 8 * HOUR },
  finalize: { does: 'storing the result', limitMs: 30 * MINUTE },
} as const;

export type LimitedStep = keyof typeof limits;

/** For a step to end after its abort: ffmpeg is killed after 2 s. One that hangs in a system call is left to itself. */
const ABORT_GRACE_MS = 10_000;

/**
 * Runs a step under its limit.
 * @param signal the job's; the step gets one that is aborted with it, or when the time is over
 * @throws ServiceError INTERNAL_ERROR, which is tried again, when the step took too long, even if it does not heed its signal;
 * what the step throws otherwise
 */
export async function withinLimit<Output>(
  step: LimitedStep,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<Output>,
  limitMs: number = limits[step].limitMs,
  graceMs: number = ABORT_GRACE_MS,
): Promise<Output> {
  const error = new ServiceError(
    'INTERNAL_ERROR',
    `the job could not be finished: ${limits[step].does} took too long`,
  );
  const reason = () => error;
  using limit = deadline(limitMs, { signal, reason });
  return await within(limitMs + graceMs, () => run(limit.signal), { reason });
}
