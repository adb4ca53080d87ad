/** What the servers of tests are sent. */
import type { Readable } from 'node:stream';

/**
 * The whole body of a request; undefined where whoever sent it has left in the middle, as a process
 * does that is ended, or loses its patience. Nobody would handle the rejection in a listener, and
 * it would fail the whole run.
 */
export function receivedBody(request: Readable): Promise<Buffer | undefined> {
  return request.toArray().then(Buffer.concat, () => undefined);
}
