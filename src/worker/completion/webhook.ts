/** Tells the caller's webhook how a job ended (decisions D). The body follows from the record, so every try sends the same. */

import type { Logger } from '../../logger.ts';
import { OutboundFailed, OutboundRefused } from '../../outbound/errors.ts';
import type { Outbound } from '../../outbound/outbound.ts';
import type { Announced } from '../../queue/announcement-tries.ts';
import type { JobRecord } from '../../queue/job-record.ts';
import type { WebhookDelivered, WebhookPayload } from '../../queue/payloads.ts';
import { type SignedHeaders, signWebhook } from '../../signing/standard-webhooks.ts';

export interface WebhookServices {
  readonly outbound: Outbound;
  readonly logger: Logger;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  /** The tenant's secrets, the current one first. */
  readonly secretsOf: (tenant: string) => Promise<readonly string[]>;
  /** What the event says about the job. */
  readonly bodyOf: (payload: WebhookPayload, record: JobRecord) => Promise<object>;
}

const TIMEOUT_MS = 15_000;
const GONE = 410;

export async function deliverWebhook(
  payload: WebhookPayload,
  deliveryId: string,
  services: WebhookServices,
): Promise<Announced<WebhookDelivered>> {
  const record = await services.readJob(payload.jobId);
  if (record === undefined) {
    return { outcome: 'final', error: 'the record of the job has expired' };
  }
  const body = JSON.stringify(await services.bodyOf(payload, record));
  const headers = signWebhook(deliveryId, body, await services.secretsOf(payload.tenant), Date.now());
  return post(payload, body, headers, services);
}

async function post(
  { url, jobId }: WebhookPayload,
  body: string,
  headers: SignedHeaders,
  { outbound, logger }: WebhookServices,
): Promise<Announced<WebhookDelivered>> {
  try {
    const { status, retryAfterSeconds } = await outbound.post({
      url,
      body,
      headers: { 'content-type': 'application/json', ...headers },
      timeoutMs: TIMEOUT_MS,
    });
    if (status >= 200 && status < 300) {
      return { outcome: 'done', result: { status } };
    }
    const error = `the receiver answered ${status}`;
    return status === GONE ? { outcome: 'final', error } : { outcome: 'retry', error, retryAfterSeconds };
  } catch (error) {
    if (error instanceof OutboundRefused) {
      logger.warn({ jobId, reason: error.reason }, 'webhook refused');
      return { outcome: 'retry', error: error.message };
    }
    if (error instanceof OutboundFailed) {
      return { outcome: 'retry', error: error.message };
    }
    throw error;
  }
}
