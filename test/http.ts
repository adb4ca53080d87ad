/**
 * How tests speak HTTP: a connection for each request. The global `fetch` keeps connections for the next request, and a server that closes an idle one at
 * that moment breaks it (EPIPE, ECONNRESET), which says nothing about the server.
 */

/** As the global one, but the connection is closed after the answer. */
export function fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  headers.set('connection', 'close');
  return globalThis.fetch(input, { ...init, headers });
}
