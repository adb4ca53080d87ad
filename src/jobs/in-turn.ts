/** A try that takes a place among those of its key and host, or gives the worker back until there is one. */
import { DelayedError, type Job } from 'bullmq';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Claim, TryPlaces } from './try-places.ts';

type HostState = Parameters<TryPlaces['leave']>[1];

/**
 * @param attempt may note what it learned of the host, which gets fewer tries while it fails
 * @throws DelayedError when its turn has not come; what the attempt throws
 */
export async function inTurn<T>(
  job: Job,
  token: string,
  places: TryPlaces,
  turn: Omit<Claim, 'jobId'>,
  attempt: (note: (host: HostState) => void) => Promise<T>,
): Promise<T> {
  const claim = { ...turn, jobId: job.id ?? '' };
  if (!(await places.take(claim, (ms) => job.moveToDelayed(redisNow() + ms, token)))) {
    throw new DelayedError();
  }
  let host: HostState;
  try {
    return await attempt((noted) => {
      host = noted;
    });
  } finally {
    // Nothing is done again because its place could not be given back: that runs out.
    await places.leave(claim, host).catch(() => undefined);
  }
}
