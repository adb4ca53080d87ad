/** How long a job that is submitted now will take: the measured mean, and the jobs that wait in front of it. */
import { meanJobSeconds } from '../queue/throughput.ts';
import type { ApiServices } from './route.ts';

/** Before anything was measured. */
const FIRST_GUESS_SECONDS = 10;

/**
 * Seconds, rounded to a tenth; a guess where Redis does not say. A job that has just been taken must not be answered with a failure
 * for want of an estimate: whoever submits without an Idempotency-Key would submit it twice.
 */
export async function estimateSeconds({ jobs, redis, settings }: ApiServices): Promise<number> {
  const [mean = FIRST_GUESS_SECONDS, waiting] = await Promise.all([
    meanJobSeconds(redis).catch(() => undefined),
    jobs.waiting().catch(() => 0),
  ]);
  const rounds = 1 + Math.max(0, waiting - 1) / settings.workerConcurrency;
  return Math.round(mean * rounds * 10) / 10;
}
