/** Room on the disk for what a request brings: made sure of before its bytes are taken. */
import type { Request } from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import { isDiskFull } from 'soundpost-kit/storage/disk-space';
import type { RouteContext } from './route.ts';

/** Space comes back as jobs end and files expire, not within seconds. */
const RETRY_AFTER_SECONDS = 30;

/**
 * Takes a request's bytes in while their space is kept from other requests of this process.
 * @param bytes default the declared length; one that is not declared only needs the reserve to be untouched
 * @throws ServiceError SERVICE_UNAVAILABLE when they do not fit, or when the disk turns out to be full; what `take` throws otherwise
 */
export async function withRoom<Result>(
  { request, services }: RouteContext,
  take: () => Promise<Result>,
  bytes = Number(request.get('content-length') ?? 0),
): Promise<Result> {
  // What is too large altogether is refused for that, by whoever reads it.
  const isTooLarge = bytes > services.settings.maxInputBytes;
  const claim = await services.disk.tryClaim(isTooLarge ? 0 : bytes, arrivedBytes(request));
  if (claim === undefined) {
    throw noRoom();
  }
  try {
    return await take();
  } catch (error) {
    throw isDiskFull(error) ? noRoom(error) : error;
  } finally {
    claim.release();
  }
}

/** What has arrived is as good as written. */
function arrivedBytes({ socket }: Request): () => number {
  const before = socket.bytesRead;
  return () => socket.bytesRead - before;
}

function noRoom(cause?: unknown): ServiceError {
  return new ServiceError('SERVICE_UNAVAILABLE', 'there is not enough disk space to take the file in', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
}
