/**
 * Where a job's video is (decisions A2), as its payload keeps it: what the headers of a request
 * hold is sealed.
 */

import { parseJson } from 'soundpost-base/json';
import { UploadId } from 'soundpost-contract/ids';
import { UrlSource } from 'soundpost-contract/job-request';
import type { Sealer } from 'soundpost-kit/signing/sealer';
import { z } from 'zod';

const SealedHeaders = z.strictObject({
  names: z.array(z.string()),
  /** JSON of the headers; of a job cancelled while it waited, forgotten. */
  sealed: z.string().optional(),
});

/** An upload's name is copied, since it can expire before the record. */
const StoredUpload = z.strictObject({ type: z.literal('upload'), file: UploadId, name: z.string() });

export const QueuedSource = z.discriminatedUnion('type', [
  UrlSource.extend({ headers: SealedHeaders.optional() }),
  StoredUpload,
]);
export type QueuedSource = z.infer<typeof QueuedSource>;

/** As requested, its address or upload checked. */
export type CheckedSource = z.infer<typeof UrlSource> | z.infer<typeof StoredUpload>;

const labelOf = (jobId: string): string => `headers of the source of ${jobId}`;

export function sealSource(sealer: Sealer, jobId: string, source: CheckedSource): QueuedSource {
  if (source.type !== 'url') return source;
  const { headers, ...address } = source;
  if (headers === undefined) return address;
  const sealed = sealer.seal(labelOf(jobId), JSON.stringify(headers));
  return { ...address, headers: { names: Object.keys(headers), sealed } };
}

/** @throws SecretsForgotten; SealBroken if SECRET_KEY has changed since the request */
export function openSource(sealer: Sealer, jobId: string, source: QueuedSource): CheckedSource {
  if (source.type !== 'url') return source;
  const { headers, ...address } = source;
  if (headers === undefined) return address;
  if (headers.sealed === undefined) throw new SecretsForgotten('the headers of its source are not kept');
  const opened = parseJson(sealer.open(labelOf(jobId), headers.sealed));
  return { ...address, headers: UrlSource.shape.headers.parse(opened) };
}

/** For a job that will fetch nothing: the names stay. */
export function withoutHeaders(source: QueuedSource): QueuedSource {
  return source.type !== 'url' || source.headers === undefined
    ? source
    : { ...source, headers: { names: source.headers.names } };
}

/** The job was cancelled while it waited, and what it would have needed was not kept. */
export class SecretsForgotten extends Error {
  override readonly name = 'SecretsForgotten';
}
