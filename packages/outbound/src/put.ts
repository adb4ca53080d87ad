/** One PUT of a file, of any size: no redirects, and an answer that may come before the file has gone. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Readable } from 'node:stream';
import { type Deadline, deadline } from 'soundpost-base/deadline';
import { OutboundFailed } from './errors.ts';
import { addressed, type PostAnswer, type PostOptions, type SendRoute, send } from './post.ts';

export interface PutOptions extends Omit<PostOptions, 'body' | 'timeoutMs'> {
  /** `service`: of an account that the operator set up. `destination`: an address that a caller chose. */
  readonly purpose: 'service' | 'destination';
  /** Exactly `sizeBytes` of them: fewer or more break the request off. Read as the receiver takes it, and destroyed at the end. */
  readonly body: Readable;
  readonly sizeBytes: number;
  /** What may pass until the receiver takes the next bytes, and from the last ones to the answer's headers. */
  readonly idleMs: number;
}

/** curl asks from this size on; a smaller file has gone by the time an answer could come. */
const ASK_FIRST_BYTES = 1024 * 1024;
/** A server that does not know `Expect` says nothing (RFC 9110, 10.1.1); curl waits as long. */
const ASK_FIRST_MS = 1_000;
const EXPECTATION_FAILED = 417;

/** @throws OutboundRefused, OutboundFailed; what `body` fails with; the reason of `signal` when that aborts */
export async function put(route: SendRoute, options: PutOptions): Promise<PostAnswer> {
  const { purpose, body, sizeBytes, idleMs, ...rest } = options;
  const attempt = (asksFirst: boolean): Promise<PostAnswer> =>
    send(route, purpose, { ...rest, timeoutMs: idleMs }, (url, headers, limit) => {
      const sending = request({
        ...addressed(url, route.agents),
        method: 'PUT',
        headers: {
          host: url.host,
          ...headers,
          'content-length': sizeBytes,
          // A connection that the server is just closing would cost a try.
          connection: 'close',
          ...(asksFirst && { expect: '100-continue' }),
        },
        signal: limit.signal,
      });
      return exchange(sending, options, asksFirst, limit);
    });
  try {
    const asksFirst = sizeBytes >= ASK_FIRST_BYTES;
    const answer = await attempt(asksFirst);
    const isMisunderstood = asksFirst && answer.status === EXPECTATION_FAILED && !body.readableDidRead;
    return isMisunderstood ? await attempt(false) : answer;
  } catch (error) {
    throw body.errored ?? error;
  } finally {
    body.on('error', () => {}).destroy();
  }
}

async function exchange(
  sending: ClientRequest,
  { body, sizeBytes }: PutOptions,
  asksFirst: boolean,
  limit: Deadline,
): Promise<IncomingMessage> {
  const over = new AbortController();
  const response = once(sending, 'response').then(([answer]: IncomingMessage[]) => answer as IncomingMessage);
  // Who answers 2xx before the end takes the rest all the same; any other answer ends the sending (RFC 9112, 9.6).
  response.then(
    ({ statusCode = 0 }) => statusCode >= 300 && over.abort(),
    () => over.abort(),
  );
  sending.on('error', () => {});
  const stop = AbortSignal.any([limit.signal, over.signal]);
  try {
    if (asksFirst) await goAhead(sending, stop);
    const sentBytes = stop.aborted ? 0 : await sendBody(sending, body, sizeBytes, limit, stop);
    limit.signal.throwIfAborted();
    if (!stop.aborted) {
      if (sentBytes !== sizeBytes) {
        throw new OutboundFailed('protocol', 'the file is not as long as it was said to be', false);
      }
      sending.end();
    }
    return await response;
  } catch (error) {
    sending.destroy();
    throw error;
  }
}

/** Sends the head alone, so that an answer to it comes before the file has gone. */
async function goAhead(sending: ClientRequest, stop: AbortSignal): Promise<void> {
  sending.flushHeaders();
  using limit = deadline(ASK_FIRST_MS, { signal: stop });
  await once(sending, 'continue', { signal: limit.signal }).catch(() => undefined);
}

/** Resolves to how many bytes it read, which may be too many. */
async function sendBody(
  sending: ClientRequest,
  body: Readable,
  sizeBytes: number,
  limit: Deadline,
  stop: AbortSignal,
): Promise<number> {
  let sentBytes = 0;
  // Left alone when the loop ends early: its own failure is the one to be told.
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    sentBytes += chunk.length;
    if (stop.aborted || sentBytes > sizeBytes) break;
    if (!sending.write(chunk)) await once(sending, 'drain', { signal: stop }).catch(() => undefined);
    if (stop.aborted) break;
    limit.renew();
  }
  return sentBytes;
}
