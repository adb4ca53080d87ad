/** The body of a request that is not JSON: a stream that ends well, or fails with what the sender is to be told. */
import { type Readable, Transform } from 'node:stream';
import type { Request } from 'express';

interface BodyErrors {
  /** More than `maxBytes` came, or is announced. */
  readonly tooLarge: () => Error;
  /** The connection broke. */
  readonly cutShort: () => Error;
}

/**
 * Where the stream is destroyed early, the rest of the request is read and dropped: a sender whose connection is cut never sees the answer.
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
  // It may fail before anybody reads it; whoever does is told then.
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
