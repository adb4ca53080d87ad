/** Parts that writers have left which died: they cost like objects and no listing of objects shows them. */
import { AbortMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket.ts';
import { hasStatus, isNoUpload } from './s3-errors.ts';

/** Where our objects lie. With an empty prefix other applications may have theirs beside them. */
const FOLDERS = ['files/', 'uploads/', 'media/'];

/**
 * Aborts the multipart uploads of ours that were begun so long ago. Where the server cannot list them there is nothing to be
 * done; a rule of the bucket removes them as well (docs/operations.md, "Storage").
 * @returns how many
 */
export async function abortAbandoned(bucket: S3Bucket, olderThanMs: number): Promise<number> {
  const before = Date.now() - olderThanMs;
  let aborted = 0;
  for (const folder of FOLDERS) aborted += await abortBelow(bucket, folder, before);
  return aborted;
}

async function abortBelow(bucket: S3Bucket, folder: string, before: number): Promise<number> {
  const { Bucket, Key: prefix } = bucket.at(folder);
  let aborted = 0;
  let after: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {};
  for (;;) {
    const command = new ListMultipartUploadsCommand({ Bucket, Prefix: prefix, ...after });
    const page = await bucket.ask('ListMultipartUploads', bucket.client.send(command).catch(orUnsupported));
    for (const { Key, UploadId, Initiated } of page?.Uploads ?? []) {
      // Whatever a server makes of the prefix, what is not ours stays.
      if (!Key?.startsWith(prefix) || Initiated === undefined || Initiated.getTime() > before) continue;
      const abort = new AbortMultipartUploadCommand({ Bucket, Key, UploadId });
      await bucket.ask('AbortMultipartUpload', bucket.client.send(abort).catch(orDone));
      aborted += 1;
    }
    if (page?.IsTruncated !== true) return aborted;
    after = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
}

function orUnsupported(error: unknown): undefined {
  if (![400, 405, 501].some((status) => hasStatus(error, status))) throw error;
}

function orDone(error: unknown): undefined {
  if (!isNoUpload(error)) throw error;
}
