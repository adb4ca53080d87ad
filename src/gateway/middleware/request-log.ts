/** Gives every request an id and a log line, without headers, query or body. */
import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler } from 'express';
import type { Logger } from 'soundpost-base/logger';
import { routeTemplate } from 'soundpost-kit/http/watched';
import type { AuditLog } from 'soundpost-kit/observe/logger';

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
          // The pattern, not the path: paths contain phone numbers.
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

// Audits each key that changed something, and each refusal (docs/operations/security.md "Audit").

const keys = new WeakMap<Request, string>();
const refused = new WeakSet<Request>();
const changing = new WeakSet<Request>();

/** @param key `gateway`, `instance:<id>`, or `inbox-session` */
export function noteKey(request: Request, key: string): void {
  keys.set(request, key);
}

export function noteRefusal(request: Request): void {
  refused.add(request);
}

/** For a GET with side effects. */
export function noteChange(request: Request): void {
  changing.add(request);
}

export function auditing(audit: AuditLog): RequestHandler {
  return (request, response, next) => {
    response.once('close', () => {
      const key = keys.get(request);
      const changes = changing.has(request) || !['GET', 'HEAD', 'OPTIONS'].includes(request.method);
      if (!(refused.has(request) || (key !== undefined && changes))) {
        return;
      }
      audit({
        event: refused.has(request) ? 'key refused' : 'key used',
        key,
        // The pattern, not the path: paths contain phone numbers.
        route: `${request.method} ${routeTemplate(request) ?? '(none)'}`,
        outcome: response.writableFinished ? response.statusCode : 'aborted',
        address: request.ip,
        requestId: requestId(request),
      });
    });
    next();
  };
}
