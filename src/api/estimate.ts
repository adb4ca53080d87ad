/** How long a job that is submitted now will take: the measured mean, and the jobs that wait in front of it. */
import type { Outlook } from '../queue/reservation.ts';
import { meanJobSeconds } from '../queue/throughput.ts';
import type { ApiServices, ApiSettings } from './route.ts';

/** Before anything was measured. */
const FIRST_GUESS_SECONDS = 10;

/** Seconds, rounded to a tenth. */
export function estimateOf(
  { meanSeconds = FIRST_GUESS_SECONDS, waiting }: Outlook,
  { workerConcurrency }: ApiSettings,
): number {
  const rounds = 1 + Math.max(0, waiting - 1) / workerConcurrency;
  return Math.round(meanSeconds * rounds * 10) / 10;
}

/** Asks Redis; a guess where it does not say. */
export async function estimateSeconds({ jobs, redis, settings }: ApiServices): Promise<number> {
  const [meanSeconds, waiting] = await Promise.all([
    meanJobSeconds(redis).catch(() => undefined),
    jobs.waiting().catch(() => 0),
  ]);
  return estimateOf({ meanSeconds, waiting }, settings);
}
