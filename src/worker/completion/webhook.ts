/** Tells the caller's webhook how a job ended (decisions D). The body follows from the record, so every try sends the same. */

import type { DeliveryAttempt } from '../../contract/answers.ts';
import type { Logger } from '../../logger.ts';
import type { Observer, WebhookOutcome } from '../../metrics/observer.ts';
import { OutboundFailed, OutboundRefused } from '../../outbound/errors.ts';
import type { Outbound } from '../../outbound/outbound.ts';
import type { Announced, Try } from '../../queue/announcement-tries.ts';
import type { JobRecord } from '../../queue/job-record.ts';
import type { WebhookDelivered, WebhookPayload } from '../../queue/payloads.ts';
import { type SignedHeaders, signWebhook } from '../../signing/standard-webhooks.ts';
import { noTracing, type Tracing } from '../../tracing/tracing.ts';

export interface WebhookServices {
  readonly outbound: Outbound;
  readonly logger: Logger;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  /** The tenant's secrets, the current one first. */
  readonly secretsOf: (tenant: string) => Promise<readonly string[]>;
  readonly logAttempt: (deliveryId: string, attempt: DeliveryAttempt) => Promise<void>;
  /** What the event says about the job. */
  readonly bodyOf: (payload: WebhookPayload, record: JobRecord) => object;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
}

const TIMEOUT_MS = 15_000;
const GONE = 410;

export async function deliverWebhook(
  payload: WebhookPayload,
  attempt: Try,
  services: WebhookServices,
): Promise<Announced<WebhookDelivered>> {
  const record = await services.readJob(payload.jobId);
  if (record === undefined) {
    return { outcome: 'final', error: 'the record of the job has expired' };
  }
  const body = JSON.stringify(services.bodyOf(payload, record));
  const headers = signWebhook(payload.deliveryId, body, await services.secretsOf(payload.tenant), Date.now());
  const startedMs = Date.now();
  const tracing = services.tracing ?? noTracing;
  const { announced, httpStatus } = await tracing.span(
    'POST webhook',
    { 'http.request.method': 'POST', 'soundpost.event': payload.event },
    async (note) => {
      const posted = await post(payload, body, { ...headers, ...tracing.headersFor('foreign') }, services);
      if (posted.httpStatus !== null) note({ 'http.response.status_code': posted.httpStatus });
      return posted;
    },
    'client',
  );
  const latencyMs = Date.now() - startedMs;
  services.observer?.webhookTried('job', outcomeOf(announced, httpStatus), latencyMs / 1000);
  if (announced.outcome === 'final' || (announced.outcome === 'retry' && attempt.last)) {
    services.observer?.webhookGivenUp('job');
  }
  await services.logAttempt(payload.deliveryId, {
    at: new Date(startedMs).toISOString(),
    httpStatus,
    latencyMs,
    error: announced.outcome === 'done' ? null : announced.error,
  });
  return announced;
}

function outcomeOf(announced: Announced<WebhookDelivered>, httpStatus: number | null): WebhookOutcome {
  if (announced.outcome === 'done') return 'delivered';
  if (httpStatus === null) return 'unreachable';
  return httpStatus === GONE ? 'gone' : 'rejected';
}

async function post(
  { url, jobId }: WebhookPayload,
  body: string,
  headers: SignedHeaders,
  { outbound, logger }: WebhookServices,
): Promise<{ announced: Announced<WebhookDelivered>; httpStatus: number | null }> {
  try {
    const { status, retryAfterSeconds } = await outbound.post({
      url,
      body,
      headers: { 'content-type': 'application/json', ...headers },
      timeoutMs: TIMEOUT_MS,
    });
    if (status >= 200 && status < 300) {
      return { announced: { outcome: 'done', result: { status } }, httpStatus: status };
    }
    const error = `the receiver answered ${status}`;
    const announced =
      status === GONE
        ? { outcome: 'final' as const, error }
        : { outcome: 'retry' as const, error, retryAfterSeconds };
    return { announced, httpStatus: status };
  } catch (error) {
    if (error instanceof OutboundRefused) {
      logger.warn({ jobId, reason: error.reason }, 'webhook refused');
    }
    if (error instanceof OutboundRefused || error instanceof OutboundFailed) {
      return { announced: { outcome: 'retry', error: error.message }, httpStatus: null };
    }
    throw error;
  }
}
