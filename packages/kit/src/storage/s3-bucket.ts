/** The connection to one bucket, and the names of keys in it. */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Socket } from 'node:net';
import { pipeline, Readable, Transform } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { deadline } from 'soundpost-base/deadline';
import type { Inventory } from './inventory.ts';
import { hasStatus, isMissing, isNoUpload, translated } from './s3-errors.ts';
import type { DownloadAddress } from './storage.ts';

export interface S3Options {
  readonly bucket: string;
  /** Prefix of every key; empty, or segments with a trailing slash. */
  readonly prefix: string;
  /** Base address of the server; unset: Amazon's, for the region. */
  readonly endpoint?: string | undefined;
  readonly region: string;
  /** Unset: found by the SDK, from its variables or a role of the machine or pod. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
  /** Timeout for a connection, ms. Default 3 s. */
  readonly connectMs?: number;
  /** Timeout for an idle connection, ms. Default 15 s. */
  readonly idleMs?: number;
  /** Attempts per request, at most. Default 4. */
  readonly tries?: number;
}

const CONNECT_MS = 3000;
const IDLE_MS = 15_000;
const TRIES = 4;
/** Concurrent short requests, and uploads; further ones wait, without a limit. */
const ASKING_SOCKETS = 64;
const SENDING_SOCKETS = 64;
/** Concurrent reads: each lasts as long as its reader takes. */
const READING_SOCKETS = 512;

export class S3Bucket {
  /** For short requests. */
  readonly client: S3Client;
  /** Separate pools, so that slow transfers block neither short requests nor each other. */
  readonly sending: S3Client;
  readonly reading: S3Client;
  readonly options: S3Options;

  constructor(options: S3Options) {
    this.options = options;
    this.client = limitedClient(options, ASKING_SOCKETS);
    this.sending = limitedClient(options, SENDING_SOCKETS);
    this.reading = limitedClient(options, READING_SOCKETS);
  }

  /** Names the object in a request. */
  at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.options.bucket, Key: `${this.options.prefix}${key}` };
  }

  /** The object's size; undefined if there is none. */
  async sizeOf(key: string): Promise<number | undefined> {
    const asking = this.client.send(new HeadObjectCommand(this.at(key))).then(
      ({ ContentLength = 0 }) => ContentLength,
      (error: unknown) => {
        if (!isMissing(error)) throw error;
        return undefined;
      },
    );
    return this.ask('HeadObject', asking);
  }

  async remove(key: string): Promise<void> {
    await this.ask('DeleteObject', this.client.send(new DeleteObjectCommand(this.at(key))));
  }

  /** Resolves if the bucket answers and may be used. */
  async ping(signal?: AbortSignal): Promise<void> {
    const command = new HeadBucketCommand({ Bucket: this.options.bucket });
    await this.ask('HeadBucket', this.client.send(command, signal && { abortSignal: signal }));
  }

  /** Replaces the SDK's errors by our own. */
  async ask<Result>(operation: string, asking: Promise<Result>): Promise<Result> {
    try {
      return await asking;
    } catch (error) {
      throw translated(error, operation, this.options);
    }
  }

  close(): void {
    this.client.destroy();
    this.sending.destroy();
    this.reading.destroy();
  }
}

/** Of an error, or a list of 1,000 uploads, which may have keys of 1,024 bytes. */
const LARGEST_ANSWER_BYTES = 4 * 1024 * 1024;

/** The SDK reads every answer but an object's content into memory, whatever its length. */
function limitedClient(options: S3Options, maxSockets: number): S3Client {
  const client = new S3Client(clientConfig(options, maxSockets));
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (request) => {
        const result = await next(request);
        const response = result.response as { readonly statusCode: number; body?: unknown };
        const isContent = commandName === 'GetObjectCommand' && response.statusCode < 300;
        if (!isContent && response.body instanceof Readable) {
          response.body = shortened(response.body, response.statusCode);
        }
        return result;
      },
    // Between the SDK's reading of the answer and the connection.
    { step: 'deserialize', priority: 'low', name: 'limitAnswers' },
  );
  return client;
}

function shortened(body: Readable, httpStatusCode: number): Readable {
  const tooLong = Object.assign(new Error('the answer is longer than 4 MiB'), {
    $metadata: { httpStatusCode },
  });
  let bytes = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > LARGEST_ANSWER_BYTES) done(tooLong);
      else done(null, chunk);
    },
  });
  // Its reader gets the error.
  return pipeline(body, limit, () => undefined);
}

function clientConfig(options: S3Options, maxSockets: number): S3ClientConfig {
  const agent = { keepAlive: true, maxSockets };
  const connectMs = options.connectMs ?? CONNECT_MS;
  return {
    region: options.region,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    // Other servers rarely have a host name for every bucket.
    forcePathStyle: options.endpoint !== undefined,
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
    maxAttempts: options.tries ?? TRIES,
    // Other servers than Amazon's refuse the checksums that the SDK adds since 3.729.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Costs a round trip per part and a connection, which the SDK then does not keep alive.
    expectContinueHeader: false,
    requestHandler: {
      // Not connectionTimeout, which also counts while a request waits for a socket of the pool.
      httpAgent: connectingWithin(connectMs, new HttpAgent(agent)),
      httpsAgent: connectingWithin(connectMs, new HttpsAgent(agent)),
      socketTimeout: options.idleMs ?? IDLE_MS,
    },
  };
}

/** Makes the agent's connections fail with ETIMEDOUT if they are not open in time. */
function connectingWithin<Agent extends HttpAgent>(ms: number, agent: Agent): Agent {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const socket = connect(options, callback);
    if (socket instanceof Socket && socket.connecting) {
      const late = () => Object.assign(new Error(`no connection within ${ms} ms`), { code: 'ETIMEDOUT' });
      const limit = deadline(ms, { reason: late });
      limit.signal.addEventListener('abort', () => socket.destroy(limit.signal.reason));
      for (const event of ['connect', 'close']) socket.once(event, () => limit[Symbol.dispose]());
    }
    return socket;
  };
  return agent;
}

// URLs by which callers fetch objects from the bucket themselves (AWS Signature Version 4,
// "Authenticating requests: using query parameters").

/** Enough to follow a redirect. A deleted file may be fetched for as long; begun reads finish. */
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

/** The bucket's objects below the prefix. */
export function bucketInventory(bucket: S3Bucket): Inventory {
  const { prefix } = bucket.options;
  return {
    async *list(folder) {
      const { Bucket, Key: Prefix } = bucket.at(folder);
      for (let after: string | undefined; ; ) {
        const command = new ListObjectsV2Command({
          Bucket,
          Prefix,
          Delimiter: '/',
          ContinuationToken: after,
        });
        const page = await bucket.ask('ListObjectsV2', bucket.client.send(command));
        const folders = (page.CommonPrefixes ?? []).flatMap(({ Prefix: name }) => ours(name, Prefix));
        const objects = (page.Contents ?? []).flatMap(({ Key, Size = 0, LastModified }) =>
          LastModified === undefined
            ? []
            : ours(Key, Prefix).map((key) => ({ key, sizeBytes: Size, writtenAtMs: LastModified.getTime() })),
        );
        yield { folders, objects };
        after = page.IsTruncated === true ? page.NextContinuationToken : undefined;
        if (after === undefined) return;
      }
    },
    remove: (key) => bucket.remove(key),
  };

  /** Never touch others' objects, even if a server ignores the prefix. */
  function ours(name: string | undefined, wanted: string): string[] {
    return name?.startsWith(wanted) && name !== wanted ? [name.slice(prefix.length)] : [];
  }
}

// Parts left by writers that died: they cost like objects, and no listing of objects shows them.

/** Folders of our objects. With an empty prefix, other applications may have theirs beside them. */
const FOLDERS = ['files/', 'uploads/', 'media/'];

/**
 * Aborts our multipart uploads of this age. If the server cannot list them, a rule of the bucket
 * must remove them (docs/operations/storage.md, "Bucket").
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
      // Never touch others' uploads, even if a server ignores the prefix.
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
