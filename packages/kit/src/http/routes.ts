/** Routes as values, mounted on Express, the only router (docs/decisions/0024-http-kit.md). */
import type { IncomingMessage } from 'node:http';
import express, { type Express, type Request, type Response, Router } from 'express';
import type { Logger } from 'soundpost-base/logger';

interface MountedRoute {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** In Express' form: `/v1/jobs/:jobId`. */
  readonly path: string;
}

export interface Mounting<Route> {
  /** Authorizes and answers the request; rejections go to the error handler. */
  readonly handle: (route: Route, request: Request, response: Response) => Promise<void>;
  /**
   * The path exists, but not with this method.
   * @param onPath the routes of the path
   */
  readonly otherMethod: (
    onPath: readonly Route[],
    request: Request,
    response: Response,
  ) => Promise<void> | void;
}

/** @param trustProxy number of trusted proxies in front */
export function application(trustProxy: number): Express {
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', 'simple');
  app.set('trust proxy', trustProxy);
  return app;
}

/**
 * Warns once if requests are forwarded but no proxy is trusted: all callers then share one limit.
 * @param trustProxy number of trusted proxies in front
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

/** @param isExact whether a trailing slash and the case of letters matter */
export function newRouter({ isExact }: { isExact: boolean }): Router {
  return Router({ caseSensitive: isExact, strict: isExact });
}

/** One layer per path, in table order: a path must precede others that match it too. */
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
