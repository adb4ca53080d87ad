/** Leaves a record of each key that changed something, and of each that was refused (docs/operations.md "Audit"). */
import type { Request, Response } from 'express';
import type { AuditLog } from '../../logger.ts';

interface Use {
  readonly key: string | undefined;
  readonly refused: boolean;
}

const uses = new WeakMap<Request, Use>();

export function noteKey(request: Request, key: string): void {
  uses.set(request, { key, refused: false });
}

/** @param key the id that the caller claims, or has */
export function noteRefusal(request: Request, key: string | undefined): void {
  uses.set(request, { key, refused: true });
}

export function auditing(audit: AuditLog): (request: Request, response: Response) => void {
  return (request, response) => {
    response.once('close', () => {
      const use = uses.get(request);
      const changes = !['GET', 'HEAD', 'OPTIONS'].includes(request.method);
      if (use === undefined || !(use.refused || changes)) {
        return;
      }
      audit({
        event: use.refused ? 'key refused' : 'key used',
        key: use.key,
        // The pattern, not the path: what is in a path may be anything where a key was refused.
        route: `${request.method} ${request.route?.path ?? '(none)'}`,
        outcome: response.writableFinished ? response.statusCode : 'aborted',
        address: request.ip,
        requestId: response.locals.requestId,
      });
    });
  };
}
