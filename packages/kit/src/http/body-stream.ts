/** The non-JSON body of a request, as a stream that fails with an error for the sender. */
import { type Readable, Transform } from 'node:stream';
import type { Request } from 'express';

interface BodyErrors {
  /** More than `maxBytes` arrived or is announced. */
  readonly tooLarge: () => Error;
  /** The connection broke. */
  readonly cutShort: () => Error;
}

/**
 * After an early destroy the rest is read and dropped, so that the sender still gets the answer.
 * @param maxBytes a Content-Length above it fails at once
 */
export function bodyStream(
  request: Request,
  { tooLarge, cutShort }: BodyErrors,
  maxBytes = Number.POSITIVE_INFINITY,
): Readable {
  let receivedBytes = 0;
  const body = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      receivedBytes += chunk.length;
      callback(receivedBytes > maxBytes ? tooLarge() : null, chunk);
    },
  });
  // It may fail before it has a reader, who then gets the error.
  body.on('error', () => undefined);
  const onCut = (): void => {
    if (!request.complete) {
      body.destroy(cutShort());
    }
  };
  request.once('error', onCut).once('close', onCut);
  body.once('close', () => {
    request.off('close', onCut).unpipe(body);
    request.resume();
  });
  if (request.destroyed) {
    onCut();
  } else if (Number(request.get('content-length') ?? 0) > maxBytes) {
    body.destroy(tooLarge());
  } else {
    request.pipe(body);
  }
  return body;
}
