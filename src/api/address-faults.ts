/** What a schema cannot see of a submission: whether its addresses are public and its uploads the caller's (decisions A2). */
import { z } from 'zod';
import { UploadId } from '../contract/ids.ts';
import { BatchRequest, JobOptions, type Source, UrlSource } from '../contract/job-request.ts';
import { OutboundRefused } from '../outbound/errors.ts';
import type { QueuedSource } from '../queue/payloads.ts';
import { findUpload } from '../uploads/record.ts';
import { type Fault, faultsError, schemaFaults } from './request-faults.ts';
import type { ApiServices } from './route.ts';

/**
 * A submission as parsed. Throws the ServiceError of all its faults at once: where the schema found some, the addresses are
 * looked at as far as they can be read, so that a caller does not meet theirs only at the next try. (Of a request without
 * schema faults they are looked at when it is submitted.)
 * @param tenant whose uploads may be named
 */
export async function parseSubmission<Schema extends z.ZodType>(
  services: ApiServices,
  tenant: string,
  schema: Schema,
  body: unknown,
): Promise<z.output<Schema>> {
  const parsed = schema.safeParse(body, { reportInput: true });
  if (parsed.success) {
    return parsed.data;
  }
  const faults = schemaFaults(parsed.error);
  const seen = new Set(faults.map(({ path }) => path));
  const others = await readableFaults(services, tenant, body);
  throw faultsError([...faults, ...others.filter(({ path }) => !seen.has(path))]);
}

/** The parts of a submission that name addresses, each undefined where it cannot be read. */
const Addressed = z.object({
  source: z
    .discriminatedUnion('type', [
      z.object(UrlSource.shape),
      z.object({ type: z.literal('upload'), file: UploadId }),
    ])
    .optional()
    .catch(undefined),
  options: z.object({ webhook: JobOptions.shape.webhook }).optional().catch(undefined),
});
const AddressedBatch = z.object({
  jobs: z.array(Addressed.catch({})).catch([]),
  webhook: BatchRequest.shape.webhook.catch(undefined),
});

async function readableFaults(services: ApiServices, tenant: string, body: unknown): Promise<Fault[]> {
  const single = Addressed.safeParse(body);
  const batch = AddressedBatch.safeParse(body);
  if (!single.success || !batch.success) {
    return [];
  }
  const jobs = [
    { path: '', job: single.data },
    ...batch.data.jobs.map((job, index) => ({ path: `jobs[${index}]`, job })),
  ];
  const faults = await Promise.all([
    ...jobs.map(async ({ path, job }) => [
      ...(job.source ? faultOf(await checkSource(services, tenant, job.source, path)) : []),
      ...(await webhookFaults(services, job.options?.webhook, within(path, 'options.webhook'))),
    ]),
    webhookFaults(services, batch.data.webhook, 'webhook'),
  ]);
  return faults.flat();
}

export function within(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

/** @param path where the job stands in the request: `` for a single one, `jobs[3]` in a batch */
export async function checkSource(
  { outbound, redis }: ApiServices,
  tenant: string,
  source: Source,
  path: string,
): Promise<QueuedSource | Fault> {
  if (source.type === 'upload') {
    const upload = await findUpload(redis, tenant, source.file);
    return upload === undefined
      ? {
          code: 'INVALID_SOURCE',
          path: within(path, 'source.file'),
          message: 'is no complete upload of this key',
        }
      : { ...source, name: upload.name };
  }
  try {
    await outbound.checkUrl(source.url, 'source');
    return source;
  } catch (error) {
    if (error instanceof OutboundRefused) {
      return { code: 'INVALID_SOURCE', path: within(path, 'source.url'), message: error.message };
    }
    throw error;
  }
}

export function faultOf(checked: QueuedSource | Fault): Fault[] {
  return 'message' in checked ? [checked] : [];
}

/** @param path of the field that gave the webhook */
export async function webhookFaults(
  { outbound }: ApiServices,
  webhook: string | undefined,
  path: string,
): Promise<Fault[]> {
  if (webhook === undefined) {
    return [];
  }
  try {
    await outbound.checkUrl(webhook, 'webhook');
    return [];
  } catch (error) {
    if (error instanceof OutboundRefused) {
      return [{ code: 'INVALID_WEBHOOK', path, message: error.message }];
    }
    throw error;
  }
}
