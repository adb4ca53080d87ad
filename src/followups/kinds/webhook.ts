/** The webhooks of jobs (decisions D). */

import type { Logger } from 'soundpost-base/logger';
import { isProbe } from 'soundpost-contract/output-request';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Tracing } from 'soundpost-kit/observe/tracing/tracing';
import type { UrlSigner } from 'soundpost-kit/signing/signatures';
import type { JobRecord } from '../../jobs/job-record.ts';
import { WebhookPayload } from '../../jobs/payloads.ts';
import { filesView, optionsView, transcriptFileView } from '../../jobs/public-view.ts';
import { endpointOf } from '../endpoints.ts';
import { type FollowUpKind, scheduled } from '../kind.ts';
import { GONE, type Post, tryWebhook, WEBHOOK_PLACES, type Webhook } from '../post-webhook.ts';

interface JobWebhookOptions {
  /** Through the outbound guard. */
  readonly post: Post;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  /** The tenant's secrets, the current one first. */
  readonly secretsOf: (tenant: string) => Promise<readonly string[]>;
  readonly signer: UrlSigner;
  /** Ascending from 0; attempts follow at the intervals between the entries. */
  readonly scheduleSeconds: readonly number[];
  readonly logSeconds: number;
  /** Called with a webhook that has ended. */
  readonly forgetPending?: (payload: WebhookPayload) => Promise<unknown>;
  readonly logger: Logger;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
}

const PLACES = { name: 'webhook', ...WEBHOOK_PLACES } as const;
const FINAL = new Set([GONE]);

export function jobWebhookKind(
  options: JobWebhookOptions,
): FollowUpKind<WebhookPayload, Webhook, { readonly status: number }> {
  const { post, readJob, secretsOf, signer, scheduleSeconds, logSeconds, logger, observer, tracing } =
    options;
  return {
    payload: WebhookPayload,
    async prepare(payload) {
      const record = await readJob(payload.jobId);
      if (record === undefined) return { outcome: 'final', error: 'the record of the job has expired' };
      const { deliveryId: id, url } = payload;
      const body = JSON.stringify(webhookBody(payload, record, signer));
      return { ready: { id, url, body, secrets: await secretsOf(payload.tenant) } };
    },
    try: (webhook, { jobId, event }, attempt, signal) =>
      tryWebhook(webhook, attempt, signal, {
        ...{ post, finalStatuses: FINAL, logger, about: { jobId }, event, tracing },
        ...(observer && { observed: { as: 'job', observer } }),
      }),
    schedule: scheduled(scheduleSeconds),
    ...(options.forgetPending && { tidy: options.forgetPending }),
    turn: async ({ tenant, url }) => ({ key: tenant, ...endpointOf(url), places: PLACES }),
    logSeconds,
  };
}

/** Derived from the record, so that every attempt sends the same ("Events"). */
export function webhookBody(
  { event, eventTimeMs, voiceMessage, transcript, transcriptFile, name, destination }: WebhookPayload,
  record: JobRecord,
  signer: UrlSigner,
): { readonly event: WebhookPayload['event']; readonly [field: string]: unknown } {
  const { jobId, payload, result, error } = record;
  const timestamp = new Date(eventTimeMs).toISOString();
  const about = { batchId: payload.batchId, options: optionsView(payload) };
  switch (event) {
    case 'job.completed':
      return {
        event,
        jobId,
        status: 'completed',
        timestamp,
        downloadUrl: isProbe(payload) ? null : `/audio-extract/v1/download/${jobId}`,
        ...(result && isProbe(payload) && { inputFile: result.inputFile }),
        ...(result && filesView(jobId, result, signer)),
        ...about,
      };
    case 'job.failed':
      return { event, jobId, status: 'failed', timestamp, error, ...about };
    case 'voice.updated':
      return { event, jobId, timestamp, voiceMessage };
    case 'destination.updated':
      return { event, jobId, timestamp, name, destination };
    case 'transcript.updated':
      return {
        event,
        jobId,
        timestamp,
        transcript,
        ...(transcriptFile && { outputFile: transcriptFileView(jobId, transcriptFile, signer) }),
      };
  }
}
