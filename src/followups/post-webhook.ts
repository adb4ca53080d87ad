/** One signed POST to a webhook, through the outbound guard or, to the operator's own address, outside of it. */

import { deadline } from 'soundpost-base/deadline';
import { redisNow } from 'soundpost-kit/redis/clock';
import { OutboundFailed } from 'soundpost-outbound/errors';
import { signWebhook } from './sign-webhook.ts';

interface PostRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

interface PostAnswer {
  readonly status: number;
  readonly latencyMs: number;
  readonly retryAfterSeconds?: number;
}

/** `Outbound.post`, or {@link postToOperator}. @throws OutboundRefused, OutboundFailed; the reason of `signal` */
export type Post = (request: PostRequest) => Promise<PostAnswer>;

export interface Webhook {
  /** The webhook-id: the same for every try and every replay. */
  readonly id: string;
  readonly url: string;
  readonly body: string;
  /** `whsec_<base64>`, the current one first. */
  readonly secrets: readonly string[];
  /** Sent beside the signature. */
  readonly headers?: Readonly<Record<string, string>>;
}

const TIMEOUT_MS = 15_000;

/** Scheme, host and port: what fails together. */
export const hostOf = (url: string): string => new URL(url).origin;

/** @throws as `post` */
export function postWebhook(
  post: Post,
  { id, url, body, secrets, headers }: Webhook,
  signal?: AbortSignal,
): Promise<PostAnswer> {
  return post({
    url,
    body,
    headers: {
      ...headers,
      'content-type': 'application/json',
      ...signWebhook(id, body, secrets, redisNow()),
    },
    timeoutMs: TIMEOUT_MS,
    ...(signal && { signal }),
  });
}

/** For the address that the operator configured, which may be private: the guard is for addresses that others chose. */
export const postToOperator: Post = async ({ url, headers, body, timeoutMs, signal }) => {
  const startedAt = performance.now();
  using limit = deadline(timeoutMs, { signal });
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers,
      body,
      signal: limit.signal,
    });
    await response.body?.cancel();
    return { status: response.status, latencyMs: Math.round(performance.now() - startedAt) };
  } catch (error) {
    signal?.throwIfAborted();
    throw limit.signal.aborted
      ? new OutboundFailed('timeout', 'the receiver took too long to answer', true, { cause: error })
      : new OutboundFailed('connect', 'the server could not be reached', true, { cause: error });
  }
};
