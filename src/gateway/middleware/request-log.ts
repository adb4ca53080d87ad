/** Gives every request its id and leaves one line of it in the log: no headers, no query, no bodies. */
import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import type { Logger } from 'soundpost-base/logger';
import { routeTemplate } from 'soundpost-kit/http/watched';

const ids = new WeakMap<Request, string>();

export function requestId(request: Request): string {
  return ids.get(request) ?? '';
}

export function requestLog(logger: Logger): RequestHandler {
  return (request, response, next) => {
    const id = randomUUID();
    const startedAt = performance.now();
    ids.set(request, id);
    response.setHeader('X-Request-Id', id);
    response.once('close', () => {
      logger.debug(
        {
          requestId: id,
          method: request.method,
          // The pattern, not the path: paths hold people's numbers.
          route: routeTemplate(request) ?? '(none)',
          status: response.statusCode,
          answered: response.writableFinished,
          ms: Math.round(performance.now() - startedAt),
        },
        'request',
      );
    });
    next();
  };
}
