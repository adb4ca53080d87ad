/**
 * An S3 server inside the test's process: s3rver, and what it leaves out. It checks no signatures
 * of version 4, cannot list parts or multipart uploads, nor abort one, and knows no If-Match: that
 * is done here, before a request reaches it. A test may have any request fail.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import S3rver from 's3rver';
import S3Error from 's3rver/lib/models/error.js';
import S3Object from 's3rver/lib/models/object.js';
import { BlobStore } from './blob-store.ts';
import type { S3Context } from './koa-context.ts';
import { type Account, refusalOf } from './signature.ts';

export interface S3Request {
  readonly method: string;
  /** Of the object; empty when the bucket is meant. */
  readonly key: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** What is to happen in place of the right answer. */
export type Fault =
  | { readonly kind: 'answer'; readonly status: number; readonly code: string }
  /** The request is never answered. */
  | { readonly kind: 'hang' }
  /** It is answered rightly, but nothing of it is done before then. */
  | { readonly kind: 'late'; readonly until: Promise<unknown> }
  /** Whatever range was asked for, all of the object is sent. */
  | { readonly kind: 'whole' }
  /**
   * The connection breaks: before anything is done, or so far into the body of the answer; 0: all
   * is done, and nothing is answered.
   */
  | { readonly kind: 'cut'; readonly afterBytes?: number }
  /** The body stops so far in, and the connection stays. */
  | { readonly kind: 'stall'; readonly afterBytes: number };

const BUCKET = 'soundpost-test';
/** The only account that s3rver knows. */
const ACCOUNT: Account = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER', region: 'eu-central-1' };

export class S3Server {
  readonly bucket = BUCKET;
  readonly account = ACCOUNT;
  readonly store: BlobStore;
  /** In order of arrival. */
  readonly requests: S3Request[] = [];
  /** Asked for every request; undefined: all is well. */
  fault: (request: S3Request) => Fault | undefined = () => undefined;
  readonly #server: S3rver;
  readonly #folder: string;
  #port = 0;

  private constructor(folder: string, address: string, port: number) {
    this.#folder = folder;
    this.store = new BlobStore(folder, BUCKET);
    this.#server = new S3rver({ address, port, silent: true, vhostBuckets: false, directory: folder });
    this.#server.store = this.store;
    this.#server.context.store = this.store;
    this.#server.context.logger = { info: ignore, warn: ignore, error: ignore };
    // In place of what logs, and behind what makes XML of an answer.
    const { middleware } = this.#server;
    middleware.shift();
    middleware.splice(1, 0, (ctx, next) => this.#handle(ctx, next));
  }

  /** @param port default: a free one */
  static async start(address = '127.0.0.1', port = 0): Promise<S3Server> {
    const server = new S3Server(await mkdtemp(join(tmpdir(), 's3-')), address, port);
    server.#port = (await server.#server.run()).port;
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The settings of a service that keeps its files here. */
  environment(prefix = 'a/prefix'): Record<string, string> {
    return {
      STORAGE_URL: `s3://${BUCKET}/${prefix}`,
      S3_ENDPOINT: this.endpoint,
      S3_REGION: ACCOUNT.region,
      S3_ACCESS_KEY_ID: ACCOUNT.accessKeyId,
      S3_SECRET_ACCESS_KEY: ACCOUNT.secretAccessKey,
    };
  }

  /** Puts something else under a key, behind the service's back. */
  async put(key: string, content: string): Promise<void> {
    await this.store.putObject(new S3Object(BUCKET, key, Readable.from([Buffer.from(content)]), {}));
  }

  /** Everything that takes room: objects, and parts of what is none yet. */
  contents(): string[] {
    return [...this.store.keys(), ...this.store.unfinished().map(({ key }) => `${key} (unfinished)`)];
  }

  /** Breaks off whatever is under way, and answers no more. */
  cutConnections(): void {
    this.#server.httpServer.closeAllConnections();
  }

  async close(): Promise<void> {
    const closed = this.#server.close();
    this.cutConnections();
    await closed;
    // A body that was broken off may just be beginning its file.
    await this.store.settled();
    await rm(this.#folder, { recursive: true });
  }

  async #handle(ctx: S3Context, next: () => Promise<void>): Promise<void> {
    const key = ctx.path.split('/').slice(2).join('/');
    const { method, query, headers } = ctx;
    const request = { method, key, query: { ...query }, headers: { ...headers } };
    this.requests.push(request);
    const refusal = refusalOf({ method, target: ctx.req.url ?? '', headers }, ACCOUNT);
    if (refusal !== undefined) throw new S3Error(refusal, 'refused by the test’s check of signatures');
    const fault = this.fault(request);
    if (fault === undefined) {
      await this.#answer(ctx, key, next);
    } else {
      await this.#fail(ctx, fault, () => this.#answer(ctx, key, next));
    }
  }

  async #answer(ctx: S3Context, key: string, next: () => Promise<void>): Promise<void> {
    const { method, query, headers } = ctx;
    if (method === 'HEAD' && key === '') {
      ctx.status = ctx.path.split('/')[1] === BUCKET ? 200 : 404;
      ctx.body = '';
    } else if (method === 'GET' && 'uploads' in query) {
      ctx.body = this.#listUploads(query.prefix ?? '');
    } else if (method === 'GET' && 'uploadId' in query) {
      ctx.body = this.#listParts(query);
    } else if (method === 'DELETE' && 'uploadId' in query) {
      this.store.abort(query.uploadId);
      ctx.status = 204;
    } else if (method === 'GET' && 'if-match' in headers && headers['if-match'] !== this.store.etagOf(key)) {
      // Missing comes first; s3rver says that itself.
      if (this.store.etagOf(key) === undefined) return next();
      throw Object.assign(new S3Error('PreconditionFailed', 'the object is another one'), { status: 412 });
    } else {
      await next();
    }
  }

  async #fail(ctx: S3Context, fault: Fault, answer: () => Promise<void>): Promise<void> {
    switch (fault.kind) {
      case 'answer':
        throw Object.assign(new S3Error(fault.code, 'as the test wants it'), { status: fault.status });
      case 'hang':
        ctx.respond = false;
        ctx.req.resume();
        return;
      case 'late':
        await fault.until;
        return answer();
      case 'whole':
        delete ctx.req.headers.range;
        return answer();
      case 'stall':
      case 'cut': {
        const { afterBytes } = fault;
        if (afterBytes === undefined) {
          ctx.respond = false;
          ctx.req.socket.destroy();
          return;
        }
        await answer();
        if (afterBytes === 0) {
          ctx.respond = false;
          ctx.req.socket.destroy();
          return;
        }
        const { socket } = ctx.req;
        const length = ctx.res.getHeader('content-length') ?? 0;
        const end = (): unknown => (fault.kind === 'cut' ? socket.destroy() : new Promise(() => undefined));
        ctx.body = Readable.from(beginning(ctx.body as Readable, afterBytes, end), { objectMode: false });
        // Koa forgets it with the body.
        ctx.res.setHeader('content-length', length);
      }
    }
  }

  /** XML is made of plain objects, by s3rver. */
  #listUploads(prefix: string): object {
    const found = this.store.unfinished().filter(({ key }) => key.startsWith(prefix));
    return {
      ListMultipartUploadsResult: {
        Bucket: BUCKET,
        IsTruncated: false,
        Upload: found.map(({ key, uploadId, begun }) => ({
          Key: key,
          UploadId: uploadId,
          Initiated: begun.toISOString(),
        })),
      },
    };
  }

  /**
   * In pages of 3, so that a short object has several. As Amazon and Ceph do, the last page has a
   * marker too: 0 when it is empty.
   */
  #listParts(query: S3Request['query']): object {
    const { parts, key, uploadId } = this.store.uploadOf(query.uploadId);
    const after = Number(query['part-number-marker'] ?? 0);
    const rest = [...parts].filter(([number]) => number > after).sort(([a], [b]) => a - b);
    const page = rest.slice(0, 3);
    return {
      ListPartsResult: {
        Bucket: BUCKET,
        Key: key,
        UploadId: uploadId,
        IsTruncated: rest.length > page.length,
        PartNumberMarker: after,
        NextPartNumberMarker: page.at(-1)?.[0] ?? 0,
        Part: page.map(([number, { size, md5, modified }]) => ({
          PartNumber: number,
          ETag: `"${md5}"`,
          Size: size,
          LastModified: modified.toISOString(),
        })),
      },
    };
  }
}

/** The tests see what comes of a request. */
function ignore(): void {}

async function* beginning(body: Readable, bytes: number, end: () => unknown): AsyncGenerator<Buffer> {
  let left = bytes;
  for await (const chunk of body) {
    const piece = chunk.subarray(0, left);
    left -= piece.length;
    yield piece;
    if (left === 0) {
      // What was given has to be on its way first.
      await new Promise((resolve) => setImmediate(resolve));
      await end();
      return;
    }
  }
}
