/**
 * How tests speak HTTP: a connection for each request. The global `fetch` keeps connections for the
 * next request, and a server that closes an idle one at that moment breaks it (EPIPE, ECONNRESET),
 * which says nothing about the server.
 */
import { fetch as request } from 'undici';

/** As the global one, but the connection is closed after the answer. */
export async function fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const asked = input instanceof Request ? { url: input.url, ...(await partsOf(input)) } : { url: input };
  const { url, ...given } = { ...asked, ...init };
  const form = given.body instanceof FormData ? await partsOf(new Response(given.body)) : {};
  const headers = new Headers([...new Headers(given.headers), ...new Headers(form.headers)]);
  headers.set('connection', 'close');
  // Not Node's own: its parser fails outside of any test where a server closes the connection of an
  // answer that is read slowly (undici before 8). The two differ in nothing but their types.
  const all = { ...given, ...form, headers: [...headers] } as Parameters<typeof request>[1];
  return (await request(url, all)) as unknown as Response;
}

async function partsOf(message: Request | Response): Promise<RequestInit> {
  const { headers } = message;
  const method = message instanceof Request ? { method: message.method, signal: message.signal } : {};
  return { headers, ...method, ...(message.body !== null && { body: await message.arrayBuffer() }) };
}
