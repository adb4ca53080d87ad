/** Routes as values, mounted on Express, which is the only router there is (docs/decisions/0024-http-kit.md). */
import type { IncomingMessage } from 'node:http';
import express, { type Express, type Request, type Response, Router } from 'express';
import type { Logger } from 'soundpost-base/logger';

interface MountedRoute {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** As Express has it: `/v1/jobs/:jobId`. */
  readonly path: string;
}

export interface Mounting<Route> {
  /** Lets the request in and answers it; what it rejects with goes to the error handler. */
  readonly handle: (route: Route, request: Request, response: Response) => Promise<void>;
  /**
   * The path exists, but not with this method.
   * @param onPath what there is on the path
   */
  readonly otherMethod: (
    onPath: readonly Route[],
    request: Request,
    response: Response,
  ) => Promise<void> | void;
}

/** @param trustProxy proxies in front whose forwarded address is believed */
export function application(trustProxy: number): Express {
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', 'simple');
  app.set('trust proxy', trustProxy);
  return app;
}

/**
 * Says once that requests were forwarded while no proxy is trusted: all callers have the proxy's address then, and are limited as one.
 * @param trustProxy proxies in front whose forwarded address is believed
 */
export function noticeForwarded(trustProxy: number, logger: Logger): (request: IncomingMessage) => void {
  let isSilent = trustProxy > 0;
  return ({ headers }) => {
    if (isSilent || (headers['x-forwarded-for'] === undefined && headers.forwarded === undefined)) return;
    isSilent = true;
    logger.warn(
      'a request was forwarded, and TRUST_PROXY is 0: if proxies stand in front, set it to their number, or all callers count as one address',
    );
  };
}

/** @param isExact whether a slash at the end and the case of letters count */
export function newRouter({ isExact }: { isExact: boolean }): Router {
  return Router({ caseSensitive: isExact, strict: isExact });
}

/** One layer a path, in the order of the table: a path that others would match too has to come before them. */
export function mount<Route extends MountedRoute, Place extends Express | Router>(
  router: Place,
  table: readonly Route[],
  { handle, otherMethod }: Mounting<Route>,
): Place {
  for (const [path, onPath] of Map.groupBy(table, (route) => route.path)) {
    const mounted = router.route(path);
    for (const route of onPath) {
      mounted[route.method]((request: Request, response: Response) => handle(route, request, response));
    }
    mounted.all((request: Request, response: Response) => otherMethod(onPath, request, response));
  }
  return router;
}
