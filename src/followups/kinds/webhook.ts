/** What the engine is told of the webhooks of jobs (decisions D). */

import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import type { Tracing } from 'soundpost-kit/observe/tracing/tracing';
import type { UrlSigner } from 'soundpost-kit/signing/signed-url';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { JobRecord } from '../../jobs/job-record.ts';
import { WebhookPayload } from '../../jobs/payloads.ts';
import { webhookBody } from '../../jobs/webhook-body.ts';
import type { DeliveryKind } from '../delivery-kind.ts';
import { hostOf } from '../post-webhook.ts';
import { scheduled } from '../schedule.ts';

interface JobWebhookOptions {
  readonly outbound: Outbound;
  readonly readJob: (jobId: string) => Promise<JobRecord | undefined>;
  /** The tenant's secrets, the current one first. */
  readonly secretsOf: (tenant: string) => Promise<readonly string[]>;
  readonly signer: UrlSigner;
  /** Ascending from 0; the distances between its entries are those between tries. */
  readonly scheduleSeconds: readonly number[];
  readonly logSeconds: number;
  readonly observer?: Observer;
  readonly tracing?: Tracing;
}

const GONE = 410;

export function jobWebhookKind(options: JobWebhookOptions): DeliveryKind {
  const { outbound, readJob, secretsOf, signer, scheduleSeconds, logSeconds, observer, tracing } = options;
  return {
    async prepare(data) {
      const payload = WebhookPayload.parse(data);
      const record = await readJob(payload.jobId);
      return record === undefined
        ? 'the record of the job has expired'
        : {
            url: payload.url,
            body: JSON.stringify(webhookBody(payload, record, signer)),
            secrets: await secretsOf(payload.tenant),
          };
    },
    post: outbound.post,
    schedule: scheduled(scheduleSeconds),
    finalStatuses: new Set([GONE]),
    async turnOf(data) {
      const { tenant, url } = WebhookPayload.parse(data);
      return { key: tenant, host: hostOf(url) };
    },
    logSeconds,
    about: ({ jobId }) => ({ jobId }),
    ...(observer && { observed: { as: 'job', observer } }),
    ...(tracing && { tracing }),
  };
}
