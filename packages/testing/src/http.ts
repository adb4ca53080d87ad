/**
 * How tests speak HTTP: a connection for each request. The global `fetch` keeps connections for the next request, and a server that closes an idle one at
 * that moment breaks it (EPIPE, ECONNRESET), which says nothing about the server.
 */

/** As the global one, but the connection is closed after the answer. */
export async function fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
  headers.set('connection', 'close');
  const response = await globalThis.fetch(input, { ...init, headers });
  // Node's parser stands still at an answer that nobody reads, and fails outside of any test when the server closes the connection then (undici before 8).
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  if (!isStream) {
    response
      .clone()
      .arrayBuffer()
      .catch(() => undefined);
  }
  return response;
}
