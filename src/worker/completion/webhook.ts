/** What the engine is told of the webhooks of jobs (decisions D). */
import type { DeliveryKind } from '../../deliveries/delivery-kind.ts';
import { hostOf } from '../../deliveries/post-webhook.ts';
import { scheduled } from '../../deliveries/schedule.ts';
import type { Observer } from '../../observe/metrics/observer.ts';
import type { Tracing } from '../../observe/tracing/tracing.ts';
import type { Outbound } from '../../outbound/outbound.ts';
import type { JobRecord } from '../../queue/job-record.ts';
import { WebhookPayload } from '../../queue/payloads.ts';
import { webhookBody } from '../../queue/webhook-body.ts';
import type { UrlSigner } from '../../signing/signed-url.ts';

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
