/** Addresses by which callers fetch objects from the bucket themselves (AWS Signature Version 4, "Authenticating requests: using query parameters"). */
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { clientConfig, type S3Bucket } from './s3-bucket.ts';
import type { DownloadAddress } from './storage.ts';

/** Long enough to follow a redirect, and how long an erased file may still be fetched; what has begun by then may take as long as it takes. */
const VALID_SECONDS = 60;

/** @param publicEndpoint base address at which callers reach the bucket */
export function presignedDownloads(bucket: S3Bucket, publicEndpoint: string): DownloadAddress {
  const client = new S3Client(clientConfig({ ...bucket.options, endpoint: publicEndpoint }, 1));
  return async (key, { contentDisposition, contentType, cacheControl }) => {
    const command = new GetObjectCommand({
      ...bucket.at(key),
      ResponseContentDisposition: contentDisposition,
      ResponseContentType: contentType,
      ResponseCacheControl: cacheControl,
    });
    return bucket.ask('presign', getSignedUrl(client, command, { expiresIn: VALID_SECONDS }));
  };
}
