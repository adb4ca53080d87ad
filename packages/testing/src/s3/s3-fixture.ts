/** A storage on an S3 server of the test's own. */
import { S3Bucket, type S3Options } from 'soundpost-kit/storage/s3-bucket';
import { createS3Storage } from 'soundpost-kit/storage/s3-storage';
import type { Storage } from 'soundpost-kit/storage/storage';
import { S3Server } from './s3-server.ts';

export const PREFIX = 'some/prefix/';

export interface StorageOnS3 {
  readonly server: S3Server;
  readonly bucket: S3Bucket;
  readonly storage: Storage;
  close(): Promise<void>;
}

export function bucketOptions(server: S3Server): S3Options {
  const { accessKeyId, secretAccessKey, region } = server.account;
  return {
    bucket: server.bucket,
    prefix: PREFIX,
    endpoint: server.endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
  };
}

export async function storageOnS3(options: Partial<S3Options> = {}): Promise<StorageOnS3> {
  const server = await S3Server.start();
  const bucket = new S3Bucket({ ...bucketOptions(server), ...options });
  return {
    server,
    bucket,
    storage: createS3Storage(bucket, { largestWriteBytes: 5 * 1024 ** 3 }),
    async close() {
      bucket.close();
      await server.close();
    },
  };
}
