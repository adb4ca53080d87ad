/**
 * Checks that a schema cannot make: public addresses, the caller's own uploads, and whether
 * transcripts are offered (decisions A2 and A8).
 */

import { DestinationRequest, namesOutputs } from 'soundpost-contract/destination';
import { UploadId } from 'soundpost-contract/ids';
import { type BatchJobRequest, BatchRequest, JobOptions, UrlSource } from 'soundpost-contract/job-request';
import { OutboundRefused } from 'soundpost-outbound/errors';
import { z } from 'zod';
import type { CheckedSource } from '../jobs/sources.ts';
import { findUpload } from '../jobs/uploads/record.ts';
import { type Fault, faultsError, schemaFaults } from './request.ts';
import type { ApiServices } from './route.ts';

/**
 * Parses a submission. Throws one ServiceError with all its faults: after schema faults, readable
 * addresses are checked too, so the caller sees everything at once. Otherwise they are checked at
 * submission.
 * @param tenant owner of the uploads that can be named
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

/** An output, or the job itself, reduced to its destination. */
const Destined = z.object({
  // null where it cannot be read: a destination was given.
  destination: z.object({ url: DestinationRequest.shape.url }).nullish().catch(null),
});
type Destined = z.infer<typeof Destined>;

/** The parts of a submission that name addresses; undefined where unreadable. */
const Addressed = z.object({
  source: z
    .discriminatedUnion('type', [
      z.object(UrlSource.shape).omit({ headers: true }),
      z.object({ type: z.literal('upload'), file: UploadId }),
    ])
    .optional()
    .catch(undefined),
  options: z.object({ webhook: JobOptions.shape.webhook }).optional().catch(undefined),
  ...Destined.shape,
  output: Destined.optional().catch(undefined),
  outputs: z
    .array(Destined.extend({ format: z.string().optional().catch(undefined) }).catch({}))
    .optional()
    .catch(undefined),
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
    ...jobs.flatMap(({ path, job }) => [
      job.source ? checkSource(services, tenant, job.source, path).then(faultOf) : [],
      transcriptFaults(services, job, path),
      webhookFaults(services, job.options?.webhook, within(path, 'options.webhook')),
      destinationFaults(services, job, path),
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
  source: BatchJobRequest['source'],
  path: string,
): Promise<CheckedSource | Fault> {
  if (source.type === 'upload') {
    const upload = await findUpload(redis, tenant, source.file);
    return upload === undefined
      ? {
          code: 'INVALID_SOURCE',
          path: within(path, 'source.file'),
          message: 'must be a complete upload of this key',
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

export function faultOf(checked: CheckedSource | Fault): Fault[] {
  return 'message' in checked ? [checked] : [];
}

/**
 * One for each transcript if the operator has configured no transcriber (decisions A8).
 * @param path where the job stands in the request
 */
export function transcriptFaults(
  { settings }: ApiServices,
  { outputs = [] }: { readonly outputs?: readonly { readonly format?: string | undefined }[] | undefined },
  path: string,
): Fault[] {
  return outputs.flatMap(({ format }, index): Fault[] =>
    format !== 'transcript' || settings.hasTranscriber
      ? []
      : [
          {
            code: 'INVALID_OUTPUT',
            path: within(path, `outputs[${index}].format`),
            message:
              'transcripts are not set up here: remove this output, or ask the operator to set TRANSCRIBER_URL',
          },
        ],
  );
}

/** @param path of the field that gave the webhook */
export async function webhookFaults(
  services: ApiServices,
  webhook: string | undefined,
  path: string,
): Promise<Fault[]> {
  // Also for an empty string, which is not an address.
  const refusal = webhook === undefined ? undefined : await refusalOf(services, webhook, 'webhook');
  return refusal ? [{ code: 'INVALID_WEBHOOK', path, message: refusal }] : [];
}

interface DestinedJob extends Destined {
  readonly output?: (Destined & { readonly format?: unknown }) | undefined;
  readonly outputs?: readonly Destined[] | undefined;
}

/** @param path where the job stands in the request */
export async function destinationFaults(
  services: ApiServices,
  { destination, output, outputs = [] }: DestinedJob,
  path: string,
): Promise<Fault[]> {
  const own = [
    ...(output ? [{ field: 'output.destination', destination: output.destination }] : []),
    ...outputs.map((one, index) => ({
      field: `outputs[${index}].destination`,
      destination: one.destination,
    })),
  ];
  const faults = await Promise.all(
    [{ field: 'destination', destination }, ...own].map(async ({ field, destination: asked }) => {
      const refusal = asked && (await refusalOf(services, asked.url, 'destination'));
      return refusal ? [fault(field, refusal)] : [];
    }),
  );
  const shared = own.filter((one) => one.destination === undefined).length;
  const isOverwritten = destination != null && shared > 1 && !namesOutputs(destination.url);
  return [
    ...faults.flat(),
    ...(isOverwritten
      ? [fault('destination', 'must have {name} in its path: several outputs would overwrite one another')]
      : []),
  ];

  function fault(field: string, message: string): Fault {
    return { code: 'INVALID_REQUEST', path: within(path, `${field}.url`), message };
  }
}

/** Why an address is refused; undefined if no reason is known yet. */
export async function refusalOf(
  { outbound }: ApiServices,
  url: string,
  purpose: 'webhook' | 'destination',
): Promise<string | undefined> {
  try {
    await outbound.checkUrl(url, purpose);
    return undefined;
  } catch (error) {
    if (error instanceof OutboundRefused) return error.message;
    throw error;
  }
}
