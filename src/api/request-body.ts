/** The body of a request that is not JSON: a stream that ends well, or fails with what the sender is to be told. */
import { type Readable, Transform } from 'node:stream';
import type { Request } from 'express';
import { ServiceError } from '../contract/errors.ts';

/**
 * The stream fails with PAYLOAD_TOO_LARGE past `maxBytes`, and with INVALID_REQUEST when the connection breaks. Where it is destroyed
 * early, the rest of the request is read and dropped: a sender whose connection is cut never sees the answer.
 * @param maxBytes a Content-Length above it fails at once
 */
export function requestBody(request: Request, maxBytes = Number.POSITIVE_INFINITY): Readable {
  let receivedBytes = 0;
  const body = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      receivedBytes += chunk.length;
      callback(receivedBytes > maxBytes ? tooLarge(maxBytes) : null, chunk);
    },
  });
  // It may fail before anybody reads it; whoever does is told then.
  body.on('error', () => undefined);
  const onCut = (): void => {
    if (!request.complete) {
      body.destroy(new ServiceError('INVALID_REQUEST', 'the body was cut short'));
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
    body.destroy(tooLarge(maxBytes));
  } else {
    request.pipe(body);
  }
  return body;
}

export function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError('PAYLOAD_TOO_LARGE', `a file may have at most ${maxBytes} bytes`);
}
