/** How long a job will take, from its own place in the fair order (docs/decisions/0004-fairness.md). */
import type { Outlook } from '../jobs/outlook.ts';
import type { ApiSettings } from './route.ts';

/** Before anything was measured. */
const FIRST_GUESS_SECONDS = 10;

/**
 * Seconds, rounded to a tenth. How many workers there are is told by how many jobs are taken up, since each takes as many as its
 * settings say when jobs wait; they are taken to have the settings of this process.
 */
export function estimateOf(
  { meanSeconds = FIRST_GUESS_SECONDS, meanEncodingSeconds = meanSeconds, inFront, running }: Outlook,
  { workerConcurrency, downloadsAhead }: Pick<ApiSettings, 'workerConcurrency' | 'downloadsAhead'>,
): number {
  const workers = Math.max(1, Math.ceil(running / (workerConcurrency + downloadsAhead)));
  const encoders = workers * workerConcurrency;
  // Those that are encoded now are half done, on average.
  const turns = inFront < encoders ? 0 : inFront / encoders - 0.5;
  return Math.round((meanSeconds + turns * meanEncodingSeconds) * 10) / 10;
}
