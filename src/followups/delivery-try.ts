/** One try of a delivery: posted, counted, logged. */
import type { Logger } from 'soundpost-base/logger';
import type { WebhookOutcome } from 'soundpost-kit/observe/metrics/observer';
import { noTracing } from 'soundpost-kit/observe/tracing/tracing';
import type { Redis } from 'soundpost-kit/redis/connection';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import { logAttempt } from './attempt-log.ts';
import type { DeliveryData, DeliveryKind } from './delivery-kind.ts';
import { postWebhook, type Webhook } from './post-webhook.ts';

const GONE = 410;

export type TryOutcome =
  | { readonly outcome: 'delivered'; readonly status: number; readonly host: HostVerdict }
  | {
      readonly outcome: 'again';
      readonly error: string;
      readonly delayMs: number;
      readonly host: HostVerdict;
    }
  | { readonly outcome: 'failed'; readonly error: string; readonly host?: HostVerdict };

/** What a try says of the host: one that answers 4xx works. */
type HostVerdict = 'answered' | 'failed';

interface Answer {
  /** Null where none came. */
  readonly httpStatus: number | null;
  /** Null for 2xx. */
  readonly error: string | null;
  readonly retryAfterSeconds: number;
  readonly cause?: Error;
}

interface TryServices {
  readonly redis: Redis;
  readonly logger: Logger;
  /** Breaks the try off, which then rejects with its reason. */
  readonly signal: AbortSignal;
}

/** @param tries how many have ended before this one */
export async function tryDelivery(
  kind: DeliveryKind,
  data: DeliveryData,
  tries: number,
  { redis, logger, signal }: TryServices,
): Promise<TryOutcome> {
  const { deliveryId } = data;
  const prepared = await kind.prepare(data);
  signal.throwIfAborted();
  if (typeof prepared === 'string') {
    return { outcome: 'failed', error: prepared };
  }
  const startedMs = Date.now();
  const { httpStatus, error, retryAfterSeconds, cause } = await send(kind, data, prepared, signal);
  const latencyMs = Date.now() - startedMs;
  const isFinal = error === null || (httpStatus !== null && kind.finalStatuses.has(httpStatus));
  const delayMs = isFinal ? undefined : kind.schedule(tries + 1, retryAfterSeconds);
  const nextAtMs = delayMs === undefined ? undefined : Date.now() + delayMs;

  const { as, observer } = kind.observed ?? {};
  if (as !== undefined) observer?.webhookTried(as, outcomeOf(httpStatus, error), latencyMs / 1000);
  if (kind.logSeconds !== undefined) {
    const at = new Date(startedMs).toISOString();
    await logAttempt(redis, deliveryId, { at, httpStatus, latencyMs, error, nextAtMs }, kind.logSeconds);
  }
  const host = httpStatus === null || httpStatus >= 500 ? 'failed' : 'answered';
  if (error === null) {
    return { outcome: 'delivered', status: httpStatus ?? 0, host };
  }
  logger.warn({ ...kind.about(data), deliveryId, error, err: cause }, 'a webhook was not taken');
  if (delayMs !== undefined) {
    return { outcome: 'again', error, delayMs, host };
  }
  if (as !== undefined) observer?.webhookGivenUp(as);
  logger.error({ ...kind.about(data), deliveryId }, 'a webhook has failed for good');
  return { outcome: 'failed', error, host };
}

function send(
  { post, tracing = noTracing }: DeliveryKind,
  { deliveryId, event }: DeliveryData,
  prepared: Omit<Webhook, 'id'>,
  signal: AbortSignal,
): Promise<Answer> {
  return tracing.span(
    'POST webhook',
    { 'http.request.method': 'POST', 'soundpost.event': String(event) },
    async (note) => {
      const headers = { ...prepared.headers, ...tracing.headersFor('foreign') };
      try {
        const webhook = { ...prepared, id: deliveryId, headers };
        const { status, retryAfterSeconds = 0 } = await postWebhook(post, webhook, signal);
        note({ 'http.response.status_code': status });
        const isTaken = status >= 200 && status < 300;
        return {
          httpStatus: status,
          error: isTaken ? null : `the receiver answered ${status}`,
          retryAfterSeconds,
        };
      } catch (error) {
        if (error instanceof OutboundRefused || error instanceof OutboundFailed) {
          return { httpStatus: null, error: error.message, retryAfterSeconds: 0, cause: error };
        }
        throw error;
      }
    },
    'client',
  );
}

function outcomeOf(httpStatus: number | null, error: string | null): WebhookOutcome {
  if (error === null) return 'delivered';
  if (httpStatus === null) return 'unreachable';
  return httpStatus === GONE ? 'gone' : 'rejected';
}
