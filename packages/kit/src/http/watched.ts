/**
 * A handler with a callback for the end of each request. The listener calls it, since it waits for
 * that end anyway: listeners per observer cost every request memory and time.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

export interface Watched {
  readonly handle: RequestListener;
  /**
   * Called once per request, after the answer or an abort; if refused, maybe without `handle`. Not
   * for one beyond `maxPipelined`.
   */
  readonly ended: (request: IncomingMessage, response: ServerResponse, came: Came) => void;
}

interface Came {
  /** Before a router removes its part. */
  readonly url: string;
  /** By `performance.now()`. */
  readonly atMs: number;
}

/** Wraps a request handler. */
export type Around = (handler: RequestListener) => RequestListener | Watched;

// The route of a request, which Express stores on the request.

/** The template, such as `/v1/jobs/:jobId`, never the path itself. Undefined without a route. */
export function routeTemplate({
  route,
  baseUrl = '',
}: IncomingMessage & { route?: { path?: unknown }; baseUrl?: string }): string | undefined {
  if (typeof route?.path !== 'string') return undefined;
  // Express ignores case when it mounts a router but stores the path as written.
  return baseUrl === '' ? route.path : `${baseUrl.toLowerCase()}${route.path}`;
}
