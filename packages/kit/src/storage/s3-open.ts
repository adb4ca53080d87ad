/** Everything that a bucket does for the service. Loaded only where one is used: the SDK takes 36 MB and a tenth of a second. */

import type { IncomingUploads } from './incoming.ts';
import { abortAbandoned, presignedDownloads, S3Bucket, type S3Options } from './s3-bucket.ts';
import { S3Incoming } from './s3-incoming.ts';
import { createS3Storage } from './s3-storage.ts';
import type { DownloadAddress, Storage } from './storage.ts';

interface S3Service {
  readonly storage: Storage;
  /** Removes what writers have left unfinished that was begun so long ago; resolves to how many. */
  readonly sweep: (olderThanMs: number) => Promise<number>;
  /** Uploads that arrive in pieces. */
  readonly incoming: (options: ConstructorParameters<typeof S3Incoming>[1]) => IncomingUploads;
  readonly downloadAddress: DownloadAddress | undefined;
  close(): void;
}

/** @param publicEndpoint base address at which callers reach the bucket; unset: they do not */
export function openS3(
  options: S3Options & Parameters<typeof createS3Storage>[1],
  publicEndpoint: string | undefined,
): S3Service {
  const bucket = new S3Bucket(options);
  return {
    storage: createS3Storage(bucket, options),
    sweep: (olderThanMs) => abortAbandoned(bucket, olderThanMs),
    incoming: (wanted) => new S3Incoming(bucket, wanted),
    downloadAddress: publicEndpoint === undefined ? undefined : presignedDownloads(bucket, publicEndpoint),
    close: () => bucket.close(),
  };
}
