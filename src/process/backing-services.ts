/** Redis and the storage, opened from the configuration. */
import { readFile } from 'node:fs/promises';
import type { RedisAddress } from 'soundpost-kit/redis/connection';
import { parseRedisUrl } from 'soundpost-kit/redis/target';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import { fileInventory, type Inventory } from 'soundpost-kit/storage/inventory';
import type { openS3 } from 'soundpost-kit/storage/s3-storage';
import type { DownloadAddress, Storage } from 'soundpost-kit/storage/storage';
import { type Config, ConfigurationError } from './config.ts';

interface OpenStorage {
  readonly storage: Storage;
  readonly inventory: Inventory;
  /** Where that is, for people: the folder, or `s3://bucket/prefix`. */
  readonly place: string;
  /** Removes unfinished files of dead writers; absent: the storage does that itself. */
  readonly sweep?: (olderThanMs: number) => Promise<number>;
  /** Uploads that arrive in pieces; absent: they are files beside the storage. */
  readonly incoming?: ReturnType<typeof openS3>['incoming'];
  /** Where callers download from the storage directly, if configured. */
  readonly downloadAddress?: DownloadAddress | undefined;
  close(): void;
}

export async function openStorage(config: Config): Promise<OpenStorage> {
  const { DATA_DIR, STORAGE_URL } = config;
  if (STORAGE_URL === undefined) {
    return {
      storage: createFileStorage({ root: DATA_DIR }),
      inventory: fileInventory(DATA_DIR),
      place: DATA_DIR,
      close: () => undefined,
    };
  }
  // The SDK is loaded only where a bucket is used.
  const { openS3 } = await import('soundpost-kit/storage/s3-storage');
  const { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = config;
  const opened = openS3(
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
  return { ...opened, place: `s3://${STORAGE_URL.bucket}/${STORAGE_URL.prefix}`.replace(/\/$/, '') };
}

type FileVariable = 'REDIS_CA_FILE' | 'REDIS_CERT_FILE' | 'REDIS_KEY_FILE';

/** `url` is undefined for an embedded Redis. Throws a ConfigurationError. */
export async function readRedisAddress(
  config: Config,
): Promise<Omit<RedisAddress, 'url'> & { readonly url: string | undefined }> {
  const url = config.REDIS_URL;
  if (url !== undefined) {
    try {
      parseRedisUrl(url);
    } catch (error) {
      throw new ConfigurationError(`REDIS_URL: ${error instanceof Error ? error.message : 'cannot be read'}`);
    }
  }
  const [ca, cert, key] = await Promise.all([
    pem('REDIS_CA_FILE', config),
    pem('REDIS_CERT_FILE', config),
    pem('REDIS_KEY_FILE', config),
  ]);
  return { url, tls: { ca, cert, key }, deadlineMs: config.REDIS_DEADLINE_SECONDS * 1000 };
}

async function pem(variable: FileVariable, config: Config): Promise<string | undefined> {
  const path = config[variable];
  if (path === undefined) {
    return undefined;
  }
  if (!config.REDIS_URL?.startsWith('rediss')) {
    throw new ConfigurationError(`${variable} is set, but REDIS_URL does not ask for TLS: write rediss://`);
  }
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new ConfigurationError(`${variable}: cannot be read (${error.message})`);
  });
  if (!text.includes('-----BEGIN ')) {
    throw new ConfigurationError(`${variable}: ${path} is not a PEM file`);
  }
  return text;
}
