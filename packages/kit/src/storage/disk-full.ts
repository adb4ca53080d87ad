/** A full volume, or a quota that is used up: how it is told from other faults, and what a job says of it. */
import { ServiceError } from 'soundpost-contract/errors';

/** Failures that mean a full volume or a used-up quota. Their causes are looked at as well. */
export function isDiskFull(error: unknown): boolean {
  for (let seen = error, depth = 0; seen instanceof Error && depth < 10; seen = seen.cause, depth += 1) {
    if ('code' in seen && (seen.code === 'ENOSPC' || seen.code === 'EDQUOT')) return true;
  }
  return false;
}

/** What a job fails with that found no room; it is tried again. */
export function outOfDiskSpace(cause?: unknown): ServiceError {
  return new ServiceError(
    'INTERNAL_ERROR',
    'the job could not be finished: the service ran out of disk space',
    { cause },
  );
}
