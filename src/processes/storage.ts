/** Where files are kept: below DATA_DIR, or in a bucket. */
import type { Config } from '../config.ts';
import { createFileStorage } from '../storage/file-storage.ts';
import type { S3Service } from '../storage/s3-open.ts';
import type { DownloadAddress, Storage } from '../storage/storage.ts';

export interface OpenStorage {
  readonly storage: Storage;
  /** Removes what writers have left unfinished; absent: the storage sees to it itself. */
  readonly sweep?: (olderThanMs: number) => Promise<number>;
  /** Uploads that arrive in pieces; absent: they are files beside the storage. */
  readonly incoming?: S3Service['incoming'];
  /** Where callers fetch files from the storage itself, when the operator wants it. */
  readonly downloadAddress?: DownloadAddress | undefined;
  close(): void;
}

export async function openStorage(config: Config): Promise<OpenStorage> {
  const { DATA_DIR, STORAGE_URL } = config;
  if (STORAGE_URL === undefined) {
    return { storage: createFileStorage({ root: DATA_DIR }), close: () => undefined };
  }
  // Nothing of the SDK is loaded where no bucket is used.
  const { openS3 } = await import('../storage/s3-open.ts');
  const { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = config;
  return openS3(
    {
      ...STORAGE_URL,
      endpoint: config.S3_ENDPOINT,
      region: config.S3_REGION,
      credentials:
        S3_ACCESS_KEY_ID === undefined || S3_SECRET_ACCESS_KEY === undefined
          ? undefined
          : { accessKeyId: S3_ACCESS_KEY_ID, secretAccessKey: S3_SECRET_ACCESS_KEY },
      largestWriteBytes: config.MAX_INPUT_BYTES,
    },
    config.S3_PUBLIC_ENDPOINT,
  );
}
