/**
 * A handler whose requests somebody watches to their end. The listener, which waits for that end anyway, tells: a closure and a `close` listener of each watcher's own cost
 * every request memory and time.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

export interface Watched {
  readonly handle: RequestListener;
  /** Called once for each request, when its answer is over or its caller is gone; of a refused one maybe without `handle`. */
  readonly ended: (request: IncomingMessage, response: ServerResponse, came: Came) => void;
}

interface Came {
  /** As it was before a router took its part off. */
  readonly url: string;
  /** By `performance.now()`. */
  readonly atMs: number;
}

/** What is to stand around the handler of requests. */
export type Around = (handler: RequestListener) => RequestListener | Watched;

// The route that a request reached, as Express notes it on the request.

/** The template, such as `/v1/jobs/:jobId`, never what stood in the path: that may be a number or a name. Undefined where no route was reached. */
export function routeTemplate({
  route,
  baseUrl = '',
}: IncomingMessage & { route?: { path?: unknown }; baseUrl?: string }): string | undefined {
  if (typeof route?.path !== 'string') return undefined;
  // Express finds where a router is mounted whatever the case, and notes it as it was written.
  return baseUrl === '' ? route.path : `${baseUrl.toLowerCase()}${route.path}`;
}
