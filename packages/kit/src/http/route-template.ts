/** The route that a request reached, as Express notes it on the request. */
import type { IncomingMessage } from 'node:http';

/** The template, such as `/v1/jobs/:jobId`, never what stood in the path: that may be a number or a name. Undefined where no route was reached. */
export function routeTemplate({
  route,
  baseUrl = '',
}: IncomingMessage & { route?: { path?: unknown }; baseUrl?: string }): string | undefined {
  if (typeof route?.path !== 'string') return undefined;
  // Express finds where a router is mounted whatever the case, and notes it as it was written.
  return baseUrl === '' ? route.path : `${baseUrl.toLowerCase()}${route.path}`;
}
