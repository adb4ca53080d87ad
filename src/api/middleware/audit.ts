/** Leaves a record of each key that changed something, and of each that was refused (docs/operations.md "Audit"). */
import type { Request, Response } from 'express';
import type { AuditLog } from 'soundpost-kit/observe/logger';

interface Use {
  readonly key: string | undefined;
  readonly refused: boolean;
}

const uses = new WeakMap<Request, Use>();

/** The key that was let in; looking at something leaves no record. */
export function noteKey(audit: AuditLog, response: Response, key: string): void {
  if (!['GET', 'HEAD', 'OPTIONS'].includes(response.req.method)) {
    note(audit, response, { key, refused: false });
  }
}

/** @param key the id that the caller claims, or has */
export function noteRefusal(audit: AuditLog, response: Response, key: string | undefined): void {
  note(audit, response, { key, refused: true });
}

/** What was noted last is recorded when the request is over. */
function note(audit: AuditLog, response: Response, use: Use): void {
  const { req: request } = response;
  const isNoted = uses.has(request);
  uses.set(request, use);
  if (!isNoted) {
    response.once('close', () => record(audit, response, uses.get(request) ?? use));
  }
}

function record(audit: AuditLog, response: Response, { key, refused }: Use): void {
  const { req: request } = response;
  audit({
    event: refused ? 'key refused' : 'key used',
    key,
    // The pattern, not the path: what is in a path may be anything where a key was refused.
    route: `${request.method} ${request.route?.path ?? '(none)'}`,
    outcome: response.writableFinished ? response.statusCode : 'aborted',
    address: request.ip,
    requestId: response.locals.requestId,
  });
}
