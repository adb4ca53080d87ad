/** What a job's webhook is told. */
import { redisNow } from 'soundpost-kit/redis/clock';
import type { JobRecord } from './job-record.ts';
import type { WebhookPayload } from './payloads.ts';

/** Adds a webhook; its delivery id makes it one, however often it is added. */
export type AddWebhook = (payload: WebhookPayload) => Promise<void>;

type About = 'version' | 'tenant' | 'jobId' | 'url' | 'eventTimeMs';

/** Nothing where the job has no webhook. @param eventTimeMs when it happened; default now */
export async function tellWebhook(
  { jobId, payload }: JobRecord,
  addWebhook: AddWebhook,
  what: Omit<WebhookPayload, About>,
  eventTimeMs = redisNow(),
): Promise<void> {
  const url = payload.options.webhook;
  if (url === undefined) return;
  await addWebhook({ version: 1, tenant: payload.tenant, jobId, url, eventTimeMs, ...what });
}
