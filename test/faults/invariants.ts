/** What must hold after every fault, whatever it was: nothing lost, nothing twice, nothing left behind. */

import { announcementFaults } from './invariants-announcements.ts';
import { fileFaults } from './invariants-files.ts';
import { leftovers } from './invariants-leftovers.ts';
import { isAtRest } from './observer.ts';
import type { AcceptedJob, Stand } from './stand.ts';

export interface Check {
  /** How long the accepted jobs may take to come to rest, ms. Default 60 s. */
  readonly restMs?: number;
}

/** Waits until everything accepted is at rest, then answers what does not hold: sentences, one a violation. */
export async function violations(stand: Stand, { restMs = 60_000 }: Check = {}): Promise<string[]> {
  const { accepted, observer } = stand;
  const ids = accepted.map(({ jobId }) => jobId);
  const notAtRest = await observer.atRest(ids, restMs).then(
    () => [],
    (error: Error) => [error.message],
  );
  // A last look at each: an end that is told now must be the one that was told before.
  for (const job of accepted) await observer.look(job).catch(() => undefined);
  const jobs = accepted.flatMap((job) => jobFaults(stand, job));
  // What a webhook still has before it, that of a voice message above all, lies in the queues until then.
  const announcements = await announcementFaults(stand);
  const others = await Promise.all([fileFaults(stand), leftovers(stand)]);
  return [...notAtRest, ...jobs, ...announcements, ...others.flat()];
}

function jobFaults({ observer }: Stand, { jobId }: AcceptedJob): string[] {
  const { ends, faults, last } = observer.of(jobId);
  const sentences = [...faults];
  if (ends.size === 0) sentences.push(`has no end: ${last?.status ?? 'it was never told of'}`);
  if (ends.size > 1) sentences.push(`was told to have ended in ${ends.size} ways: ${[...ends].join('; ')}`);
  if (ends.size === 1 && !isAtRest(last))
    sentences.push('has announcements that are neither made nor given up');
  return sentences.map((sentence) => `${jobId}: ${sentence}`);
}
