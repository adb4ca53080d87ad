/** The connection to one bucket, and how our keys are called in it. */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Socket } from 'node:net';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { deadline } from 'soundpost-base/deadline';
import { hasStatus, isMissing, isNoUpload, translated } from './s3-errors.ts';
import type { DownloadAddress } from './storage.ts';

export interface S3Options {
  readonly bucket: string;
  /** Before every key; empty, or segments with a slash at the end. */
  readonly prefix: string;
  /** Base address of the server; unset: Amazon's, for the region. */
  readonly endpoint?: string | undefined;
  readonly region: string;
  /** Unset: as the SDK finds them, from its own variables, a role of the machine or of the pod. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
  /** How long it may take until a connection stands, ms. Default 3 s. */
  readonly connectMs?: number;
  /** How long a connection may stand still, ms. Default 15 s. */
  readonly idleMs?: number;
  /** How often a request is sent at most. Default 4. */
  readonly tries?: number;
}

const CONNECT_MS = 3000;
const IDLE_MS = 15_000;
const TRIES = 4;
/** Questions, and what is sent, at a time; more wait their turn, for as long as it takes. */
const ASKING_SOCKETS = 64;
const SENDING_SOCKETS = 64;
/** Objects on their way from the bucket: each is held for as long as its reader takes. */
const READING_SOCKETS = 512;

export class S3Bucket {
  /** For questions, which are answered soon. */
  readonly client: S3Client;
  /** For sending bytes, and for reading them: so that crowds of slow transfers hold up no question, and not each other. */
  readonly sending: S3Client;
  readonly reading: S3Client;
  readonly options: S3Options;

  constructor(options: S3Options) {
    this.options = options;
    this.client = new S3Client(clientConfig(options, ASKING_SOCKETS));
    this.sending = new S3Client(clientConfig(options, SENDING_SOCKETS));
    this.reading = new S3Client(clientConfig(options, READING_SOCKETS));
  }

  /** What names the object in a request. */
  at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.options.bucket, Key: `${this.options.prefix}${key}` };
  }

  /** Of the object; undefined when there is none. */
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

  /** Resolves when the bucket answers, and is ours to use. */
  async ping(signal?: AbortSignal): Promise<void> {
    const command = new HeadBucketCommand({ Bucket: this.options.bucket });
    await this.ask('HeadBucket', this.client.send(command, signal && { abortSignal: signal }));
  }

  /** What it comes to, or an error of our own in place of the SDK's. */
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

function clientConfig(options: S3Options, maxSockets: number): S3ClientConfig {
  const agent = { keepAlive: true, maxSockets };
  const connectMs = options.connectMs ?? CONNECT_MS;
  return {
    region: options.region,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    // A server of one's own rarely has a name for every bucket.
    forcePathStyle: options.endpoint !== undefined,
    ...(options.credentials === undefined ? {} : { credentials: options.credentials }),
    maxAttempts: options.tries ?? TRIES,
    // Other servers than Amazon's refuse the checksums that the SDK adds by itself since 3.729.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Costs a turn before each part, and a connection: the SDK keeps none alive that was asked so.
    expectContinueHeader: false,
    requestHandler: {
      // Not connectionTimeout: that one counts while a request waits for a socket of the pool as well.
      httpAgent: connectingWithin(connectMs, new HttpAgent(agent)),
      httpsAgent: connectingWithin(connectMs, new HttpsAgent(agent)),
      socketTimeout: options.idleMs ?? IDLE_MS,
    },
  };
}

/** The agent, whose connections fail with ETIMEDOUT when they do not stand in time. */
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

// Addresses by which callers fetch objects from the bucket themselves (AWS Signature Version 4,
// "Authenticating requests: using query parameters").

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

// Parts that writers have left which died: they cost like objects and no listing of objects shows
// them.

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
