/** The only place that decides how a failed request is answered. */
import type { ErrorRequestHandler } from 'express';
import { ServiceError } from 'soundpost-contract/errors';
import { awayReason } from 'soundpost-kit/observe/away';
import { heldKeys } from 'soundpost-kit/observe/held-keys';
import { UnreadableRecord } from 'soundpost-kit/redis/record';
import { NotReplicated } from 'soundpost-kit/redis/replication';
import { sendError } from '../answer.ts';
import { LimitReached } from '../limit-reached.ts';
import type { ApiServices } from '../route.ts';
import { setRateLimit } from './authentication.ts';

const RETRY_AFTER_SECONDS = 2;

export function errorHandler({
  logger,
  observer,
}: Pick<ApiServices, 'logger' | 'observer'>): ErrorRequestHandler {
  const noteHeld = heldKeys(logger, observer);
  return (error: unknown, request, response, _next) => {
    const answer = asServiceError(error);
    if (answer.code === 'INTERNAL_ERROR' || answer.code === 'SERVICE_UNAVAILABLE') {
      logger.error(
        { requestId: response.locals.requestId, method: request.method, err: error },
        'request failed',
      );
    }
    const reason = answer.code === 'SERVICE_UNAVAILABLE' ? awayReason(answer.cause) : undefined;
    if (reason !== undefined) observer.partAway(reason);
    if (answer instanceof LimitReached) {
      const { limit, rate } = answer;
      const { key, requestId } = response.locals as { readonly key: string; readonly requestId: string };
      if (rate !== undefined) setRateLimit(response, rate.policy, rate.state, rate.windowSeconds);
      noteHeld(key, limit, { requestId });
    }
    if (response.headersSent) {
      // The status is already sent: only cutting the connection signals the error.
      response.socket?.destroy();
      return;
    }
    const { sendError: send = sendError } = response.locals as { readonly sendError?: typeof sendError };
    send(response, answer);
  };
}

function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) {
    return error;
  }
  if (!(error instanceof Error)) {
    return new ServiceError('INTERNAL_ERROR', 'the service failed unexpectedly');
  }
  if (error instanceof NotReplicated) {
    return new ServiceError(
      'SERVICE_UNAVAILABLE',
      'the request could not be replicated in time; send it again, with the same Idempotency-Key if it had one',
      { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: error },
    );
  }
  if (error instanceof UnreadableRecord) {
    return new ServiceError('NOT_FOUND', `the record exists but cannot be read: ${error.message}`, {
      cause: error,
    });
  }
  return bodyError(error) ?? unreachable(error) ?? internal(error);
}

/** Errors of the JSON body reader (packages/kit/src/http/json-body.ts). */
function bodyError(error: Error): ServiceError | undefined {
  const type = 'type' in error && typeof error.type === 'string' ? error.type : undefined;
  switch (type) {
    case undefined:
      return undefined;
    case 'entity.too.large':
      return new ServiceError(
        'PAYLOAD_TOO_LARGE',
        `this JSON body may have at most ${'limit' in error ? Number(error.limit) / 1024 : 256} KiB`,
      );
    case 'media-type.unsupported':
      return new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'send application/json');
    case 'charset.unsupported':
    case 'encoding.unsupported':
      return new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'send JSON in UTF-8, not compressed');
    case 'json.odd':
      return new ServiceError('INVALID_REQUEST', error.message);
    default:
      return new ServiceError('INVALID_REQUEST', 'the body is not valid JSON');
  }
}

/** Redis or the storage is unreachable, full or read-only. */
function unreachable(error: Error): ServiceError | undefined {
  return awayReason(error) === undefined
    ? undefined
    : new ServiceError('SERVICE_UNAVAILABLE', 'the service is temporarily unavailable', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
        cause: error,
      });
}

function internal(error: Error): ServiceError {
  // URIError: a path that cannot be decoded; express adds a status.
  if (error instanceof URIError) {
    return new ServiceError('INVALID_REQUEST', 'the path is not valid percent-encoded UTF-8');
  }
  return new ServiceError('INTERNAL_ERROR', 'the service failed unexpectedly', { cause: error });
}
