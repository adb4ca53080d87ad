/** One signed POST (Standard Webhooks 1.0.0), through the outbound guard or to the operator. */

import { deadline } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import type { Observer, WebhookOutcome } from 'soundpost-kit/observe/metrics/observer';
import { noTracing, type Tracing } from 'soundpost-kit/observe/tracing/tracing';
import { redisNow } from 'soundpost-kit/redis/clock';
import { webhookMac } from 'soundpost-kit/signing/signatures';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import type { Attempt, Tried } from './kind.ts';

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

/**
 * `Outbound.post`, or {@link postToOperator}.
 * @throws OutboundRefused, OutboundFailed; the reason of `signal`
 */
export type Post = (request: PostRequest) => Promise<PostAnswer>;

export interface Webhook {
  /** The webhook-id: the same for every attempt and every replay. */
  readonly id: string;
  readonly url: string;
  readonly body: string;
  /** `whsec_<base64>`, the current one first. */
  readonly secrets: readonly string[];
  /** Sent beside the signature. */
  readonly headers?: Readonly<Record<string, string>>;
}

const TIMEOUT_MS = 15_000;

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

/** The operator's address can be private; the guard is for addresses chosen by others. */
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

interface WebhookTry {
  readonly post: Post;
  /** Answers other than 2xx that end the attempts. */
  readonly finalStatuses: ReadonlySet<number>;
  readonly logger: Logger;
  /** How the log identifies it. */
  readonly about: object;
  readonly event: string;
  /** Undefined if attempts are not counted. */
  readonly observed?: {
    readonly as: Parameters<Observer['webhookTried']>[0];
    readonly observer: Observer;
  };
  /** Undefined if receivers get no trace headers. */
  readonly tracing?: Tracing | undefined;
}

export const GONE = 410;
/** Concurrent attempts of a process. */
export const WEBHOOKS_AT_A_TIME = 500;
/**
 * Concurrent attempts of all processes; one takes 15 s at most, its preparation little. A host can
 * be everybody's (n8n, Zapier): it has half of them (decisions D), so that it takes many keys to
 * fill.
 */
export const WEBHOOK_PLACES = { perKey: 32, perHost: WEBHOOKS_AT_A_TIME / 2, leaseMs: 30_000 };

/** One attempt at a webhook: posts it, counts it, and interprets the answer. */
export async function tryWebhook(
  webhook: Webhook,
  { last }: Attempt,
  signal: AbortSignal,
  options: WebhookTry,
): Promise<Tried<{ readonly status: number }>> {
  const { finalStatuses, logger, about } = options;
  const startedAt = performance.now();
  const { httpStatus, error, retryAfterSeconds, cause } = await send(webhook, signal, options);
  const latencyMs = Math.round(performance.now() - startedAt);
  const { as, observer } = options.observed ?? {};
  if (as !== undefined) observer?.webhookTried(as, outcomeOf(httpStatus, error), latencyMs / 1000);
  const tried = { httpStatus, latencyMs };
  if (error === undefined) return { ...tried, outcome: 'done', result: { status: httpStatus ?? 0 } };
  logger.warn({ ...about, deliveryId: webhook.id, error, err: cause }, 'a webhook was not accepted');
  const isFinal = last || (httpStatus !== null && finalStatuses.has(httpStatus));
  if (!isFinal) return { ...tried, outcome: 'retry', error, retryAfterSeconds };
  if (as !== undefined) observer?.webhookGivenUp(as);
  logger.error({ ...about, deliveryId: webhook.id }, 'a webhook has failed for good');
  return { ...tried, outcome: 'final', error };
}

interface Answer {
  /** Null without an answer. */
  readonly httpStatus: number | null;
  /** Undefined for 2xx. */
  readonly error?: string;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: Error;
}

function send(
  webhook: Webhook,
  signal: AbortSignal,
  { post, event, tracing = noTracing }: WebhookTry,
): Promise<Answer> {
  return tracing.span(
    'POST webhook',
    { 'http.request.method': 'POST', 'soundpost.event': event },
    async (note): Promise<Answer> => {
      const headers = { ...webhook.headers, ...tracing.headersFor('foreign') };
      try {
        const { status, retryAfterSeconds } = await postWebhook(post, { ...webhook, headers }, signal);
        note({ 'http.response.status_code': status });
        const isTaken = status >= 200 && status < 300;
        return isTaken
          ? { httpStatus: status }
          : { httpStatus: status, error: `the receiver answered ${status}`, retryAfterSeconds };
      } catch (error) {
        if (error instanceof OutboundRefused || error instanceof OutboundFailed) {
          return { httpStatus: null, error: error.message, cause: error };
        }
        throw error;
      }
    },
    'client',
  );
}

function outcomeOf(httpStatus: number | null, error: string | undefined): WebhookOutcome {
  if (error === undefined) return 'delivered';
  if (httpStatus === null) return 'unreachable';
  return httpStatus === GONE ? 'gone' : 'rejected';
}

/**
 * @param id the same for every attempt, so that a receiver can drop what it has seen
 * @param secrets the current one first; during a rotation also the previous one
 */
export function signWebhook(id: string, body: string, secrets: readonly string[], nowMs: number) {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = secrets.map(
    (secret) => `v1,${webhookMac(secret, id, timestamp, body).toString('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
