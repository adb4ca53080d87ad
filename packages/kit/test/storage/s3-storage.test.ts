/** What S3 does beyond the contract, and what it gets wrong. Every request here had its signature checked by the server of the tests. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { fetch } from 'soundpost-testing/http';
import { bucketOptions, PREFIX, type StorageOnS3, storageOnS3 } from 'soundpost-testing/s3/s3-fixture';
import type { Fault, S3Request, S3Server } from 'soundpost-testing/s3/s3-server';
import { describeStorage } from 'soundpost-testing/storage-suite';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { StorageLate, withDeadline } from '../../src/storage/deadline.ts';
import { abortAbandoned, presignedDownloads, S3Bucket } from '../../src/storage/s3-bucket.ts';
import { createS3Storage } from '../../src/storage/s3-storage.ts';
import { ObjectNotFound, type Storage, StorageUnavailable } from '../../src/storage/storage.ts';

const MIB = 1024 ** 2;

describeStorage('a bucket as storage', async () => {
  const { server, storage, close } = await storageOnS3();
  return {
    storage,
    keys: async () => server.contents().map((key) => key.slice(PREFIX.length)),
    close,
  };
});

let on: StorageOnS3;
let server: S3Server;
let storage: Storage;
let folder: string;

beforeEach(async () => {
  on = await storageOnS3();
  ({ server, storage } = on);
  folder = await mkdtemp(join(tmpdir(), 's3-storage-'));
});
afterEach(async () => {
  await on.close();
  await rm(folder, { recursive: true });
});

/** The same bucket for somebody who gives a connection up after a second. Not for all: this machine may be slower than that. */
function impatient(): Storage {
  const bucket = new S3Bucket({ ...bucketOptions(server), idleMs: 1000, tries: 3 });
  onTestFinished(() => bucket.close());
  return createS3Storage(bucket, { largestWriteBytes: 1 });
}
const put = (key: string, content: Uint8Array | string) => storage.write(key, Readable.from([content]));
const contentOf = async (key: string) => buffer(await storage.read(key));
const isPart = ({ method, query }: S3Request) => method === 'PUT' && query.partNumber !== undefined;
/** The first requests of the kind fail. */
function failing(kind: (request: S3Request) => boolean, ...faults: readonly Fault[]): void {
  const left = [...faults];
  server.fault = (request) => (kind(request) ? left.shift() : undefined);
}

describe('a large object', () => {
  const content = randomBytes(6 * MIB);

  test('is whole although a part had to be sent again', async () => {
    failing(isPart, { kind: 'cut' }, { kind: 'answer', status: 503, code: 'SlowDown' });
    await put('large', content);
    expect((await contentOf('large')).equals(content)).toBe(true);
    expect(server.requests.filter(isPart)).toHaveLength(2 + 2);
  });

  test('is there although the answer to its completion was lost', async () => {
    let lost = 0;
    server.fault = ({ method, query }) => {
      const isCompletion = method === 'POST' && query.uploadId !== undefined;
      return isCompletion && lost++ === 0 ? { kind: 'cut', afterBytes: 0 } : undefined;
    };
    expect(await put('large', content)).toEqual({ key: 'large', sizeBytes: content.length });
    expect(lost).toBeGreaterThan(1);
    expect((await contentOf('large')).equals(content)).toBe(true);
  });

  test('of a part of which nothing arrives, ever, leaves no parts', async () => {
    server.fault = (request) =>
      isPart(request) && request.query.partNumber === '2' ? { kind: 'cut' } : undefined;
    await expect(put('large', content)).rejects.toBeInstanceOf(StorageUnavailable);
    expect(server.contents()).toEqual([]);
  });

  test('whose source fails between parts leaves no parts, and the error as it was', async () => {
    const cut = new Error('the sender hung up');
    async function* source() {
      yield content.subarray(0, 6 * MIB - 1);
      await until('a part is there', () => server.store.unfinished()[0]?.parts.size === 1);
      throw cut;
    }
    await expect(storage.write('large', Readable.from(source()))).rejects.toBe(cut);
    expect(server.contents()).toEqual([]);
  });

  test('is not replaced by one that could not be completed', async () => {
    await put('large', 'before');
    failing(({ method, query }) => method === 'POST' && query.uploadId !== undefined, {
      kind: 'answer',
      status: 403,
      code: 'AccessDenied',
    });
    await expect(put('large', content)).rejects.toMatchObject({ code: 'EACCES' });
    expect((await contentOf('large')).toString()).toBe('before');
    expect(server.contents()).toEqual([`${PREFIX}large`]);
  });

  test('comes whole over a connection that breaks, and one that stands still', async () => {
    await put('large', content);
    failing(
      ({ method, key }) => method === 'GET' && key !== '',
      { kind: 'cut', afterBytes: 3 * MIB },
      { kind: 'stall', afterBytes: MIB },
      { kind: 'cut' },
    );
    expect((await buffer(await impatient().read('large'))).equals(content)).toBe(true);
    const ranges = server.requests.flatMap(({ method, headers }) =>
      method === 'GET' ? [headers.range] : [],
    );
    expect(ranges.length).toBeGreaterThanOrEqual(4);
    // Until some of it has come the whole is asked for, from then on the rest.
    const began = ranges.findIndex((range) => range !== undefined);
    expect(began).toBeGreaterThan(0);
    for (const range of ranges.slice(began)) expect(range).toMatch(/^bytes=\d+-6291455$/);
  });

  test('copied to a workspace is whole, or not said to be', async () => {
    await put('large', content);
    let room = 0;
    const copying = {
      makeRoom: async (bytes: number) => {
        room = bytes;
      },
    };
    const path = await storage.localCopy('large', folder, copying);
    expect((await readFile(path)).equals(content)).toBe(true);
    expect(room).toBe(content.length);
    expect(((await stat(path)).mode & 0o777).toString(8)).toBe('600');
    const early = new AbortController();
    let asked = 0;
    server.fault = ({ method }) => {
      if (method !== 'GET') return undefined;
      asked += 1;
      if (asked === 4) early.abort(new Error('enough'));
      return { kind: 'cut', afterBytes: 10 };
    };
    await rm(path);
    await expect(storage.localCopy('large', folder, { signal: early.signal })).rejects.toThrow();
    expect(early.signal.aborted).toBe(true);
  });

  test('that is replaced while it is read is no mixture of both', async () => {
    await put('large', content);
    const reader = await storage.read('large');
    await put('large', randomBytes(6 * MIB));
    server.cutConnections();
    const outcome = await buffer(reader).then(() => 'read to its end', String);
    expect(outcome).toContain('PreconditionFailed');
  });

  test('whose reader goes away is not fetched to its end', async () => {
    await put('large', content);
    failing(({ method }) => method === 'GET', { kind: 'stall', afterBytes: 10 });
    const reader = await storage.read('large');
    await new Promise((resolve) => reader.once('data', resolve));
    const closed = new Promise((resolve) => reader.once('close', resolve));
    reader.destroy();
    await closed;
    const asked = server.requests.length;
    await put('other', 'x');
    expect(server.requests.slice(asked).map(({ method }) => method)).toEqual(['PUT']);
  });
});

describe('a download that breaks off', () => {
  const content = randomBytes(6 * MIB);
  const isGet = ({ method, key }: S3Request) => method === 'GET' && key !== '';

  test('fails when the rest that comes is not the rest', async () => {
    await put('large', content);
    failing(isGet, { kind: 'cut', afterBytes: MIB }, { kind: 'whole' });
    await expect(contentOf('large')).rejects.toThrow('has sent all of it');
    expect(server.requests.filter(isGet)).toHaveLength(2);
  });

  test('is asked for again as often as any request, and no more', async () => {
    await put('large', content);
    let asked = 0;
    server.fault = (request) => {
      if (!isGet(request)) return undefined;
      asked += 1;
      return asked === 1
        ? { kind: 'cut', afterBytes: MIB }
        : { kind: 'answer', status: 500, code: 'InternalError' };
    };
    const bucket = new S3Bucket({ ...bucketOptions(server), tries: 3 });
    onTestFinished(() => bucket.close());
    const reading = createS3Storage(bucket, { largestWriteBytes: 1 }).read('large');
    await expect(buffer(await reading)).rejects.toThrow('InternalError');
    expect(asked).toBe(1 + 3);
  });
});

describe('ranges', () => {
  test('of which the server knows nothing are not taken for what was asked for', async () => {
    await put('small', 'content');
    server.fault = () => ({ kind: 'whole' });
    await expect(storage.read('small', { start: 0, end: 2 })).rejects.toThrow('asked for bytes 0-2');
  });

  test('of an object in two parts', async () => {
    const content = randomBytes(6 * MIB);
    await put('large', content);
    for (const [start, end] of [
      [5 * MIB - 1, 5 * MIB],
      [0, 0],
      [6 * MIB - 1, 7 * MIB],
    ] as const) {
      const read = await buffer(await storage.read('large', { start, end }));
      expect(read.equals(content.subarray(start, end + 1))).toBe(true);
    }
  });
});

describe('what goes wrong is told as by a file system, with what to do', () => {
  const answering = (status: number, code: string) => {
    server.fault = () => ({ kind: 'answer', status, code });
  };

  test.each([
    [403, 'AccessDenied', 'EACCES', /access is denied.*S3_ACCESS_KEY_ID/],
    [403, 'InvalidAccessKeyId', 'EACCES', /access is denied/],
    [404, 'NoSuchBucket', 'ENOENT', /no such bucket.*STORAGE_URL/],
    [301, 'PermanentRedirect', 'EACCES', /another region.*S3_REGION is eu-central-1/],
    [400, 'AuthorizationHeaderMalformed', 'EACCES', /another region/],
    [403, 'RequestTimeTooSkewed', 'EACCES', /clocks/],
    [507, 'XMinioStorageFull', 'ENOSPC', /no room/],
    [500, 'InternalError', 'ETIMEDOUT', /InternalError/],
  ])('%i %s', async (status, code, expected, message) => {
    answering(status, code);
    const error = await put('a', 'x').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StorageUnavailable);
    expect(error).toMatchObject({ code: expected, message: expect.stringMatching(message) });
    expect(error).toMatchObject({ message: expect.stringContaining(server.bucket) });
  });

  test('questions without a body in their answer', async () => {
    answering(403, 'AccessDenied');
    await expect(storage.stat('a')).rejects.toMatchObject({ code: 'EACCES' });
    await expect(storage.ping()).rejects.toMatchObject({ code: 'EACCES' });
    answering(301, 'PermanentRedirect');
    await expect(storage.ping()).rejects.toThrow('another region');
    server.fault = () => undefined;
    const nowhere = createS3Storage(new S3Bucket({ ...bucketOptions(server), bucket: 'none' }), {
      largestWriteBytes: 1,
    });
    await expect(nowhere.ping()).rejects.toThrow('no such bucket');
  });

  test('a wrong secret, which the server of the tests sees', async () => {
    const credentials = { accessKeyId: server.account.accessKeyId, secretAccessKey: 'wrong' };
    const bucket = new S3Bucket({ ...bucketOptions(server), credentials });
    const stranger = createS3Storage(bucket, { largestWriteBytes: 1 });
    await expect(stranger.write('a', Readable.from(['x']))).rejects.toThrow('SignatureDoesNotMatch');
    expect(server.contents()).toEqual([]);
    bucket.close();
  });

  test('no server', async () => {
    await server.close();
    const error = await storage.stat('a').catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ECONNREFUSED', message: expect.stringContaining('S3_ENDPOINT') });
    // For whoever closes it once more.
    on = await storageOnS3();
  });

  test('slow down, then go on', async () => {
    failing(() => true, { kind: 'answer', status: 503, code: 'SlowDown' });
    expect(await put('a', 'x')).toEqual({ key: 'a', sizeBytes: 1 });
    expect(server.requests).toHaveLength(2);
  });

  test('an object that goes between being looked at and being fetched', async () => {
    await put('a', 'x');
    server.fault = ({ method }) => {
      if (method === 'GET') void server.store.deleteObject('', `${PREFIX}a`);
      return undefined;
    };
    await expect(storage.localCopy('a', folder)).rejects.toBeInstanceOf(ObjectNotFound);
  });
});

describe('a server that hangs', () => {
  test('is given up within the deadline by who answers requests', async () => {
    const hurried = withDeadline(storage, 200);
    server.fault = () => ({ kind: 'hang' });
    for (const ask of [
      () => hurried.stat('a'),
      () => hurried.read('a'),
      () => hurried.remove('a'),
      () => hurried.write('a', Readable.from(['x'])),
    ]) {
      // By the deadline: the bucket itself waits for much longer, and fails otherwise.
      await expect(ask()).rejects.toThrow(StorageLate);
    }
  });

  test('that accepts connections and says nothing is given up as well', async () => {
    const full = createServer();
    await new Promise<void>((resolve) => full.listen(0, '127.0.0.1', resolve));
    const address = full.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const bucket = new S3Bucket({
      ...bucketOptions(server),
      endpoint: `http://127.0.0.1:${port}`,
      idleMs: 100,
      tries: 2,
    });
    const silent = createS3Storage(bucket, { largestWriteBytes: 1 });
    await expect(silent.ping()).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    bucket.close();
    full.close();
  });

  test('to which no connection comes about is given up too', async () => {
    const port = await portThatTakesNobody();
    const endpoint = `http://127.0.0.1:${port}`;
    const bucket = new S3Bucket({ ...bucketOptions(server), endpoint, connectMs: 300, tries: 2 });
    onTestFinished(() => bucket.close());
    const unreachable = createS3Storage(bucket, { largestWriteBytes: 1 });
    // By this limit: the system itself tries for minutes, and fails otherwise.
    const late = { code: 'ETIMEDOUT', cause: { message: 'no connection within 300 ms' } };
    await expect(unreachable.ping()).rejects.toMatchObject(late);
    await expect(unreachable.write('a', Readable.from(['x']))).rejects.toMatchObject(late);
  });
});

/** The system takes connections into the line of a server that never looks; when the line is full it takes no more. */
async function portThatTakesNobody(): Promise<number> {
  const deaf = new Worker(
    `const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
    });`,
    { eval: true },
  );
  onTestFinished(async () => void (await deaf.terminate()));
  const [port] = await once(deaf, 'message');
  const line = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  onTestFinished(() => line.forEach((socket) => void socket.destroy()));
  await until('the line is full', () => line.filter(({ connecting }) => !connecting).length >= 2);
  return port;
}

test('what writers have left that died goes when it is old enough', async () => {
  for (const [uploadId, hours] of [
    ['old', 30],
    ['young', 1],
  ] as const) {
    await server.store.initiateUpload('', `${PREFIX}uploads/${uploadId}`, uploadId);
    server.store.uploadOf(uploadId).begun = new Date(Date.now() - hours * 3_600_000);
  }
  await server.store.initiateUpload('', 'of-somebody-else', 'theirs');
  server.store.uploadOf('theirs').begun = new Date(0);
  await put('object', 'x');
  expect(await abortAbandoned(on.bucket, 24 * 3_600_000)).toBe(1);
  expect(server.contents().sort()).toEqual([
    'of-somebody-else (unfinished)',
    `${PREFIX}object`,
    `${PREFIX}uploads/young (unfinished)`,
  ]);
  server.fault = () => ({ kind: 'answer', status: 501, code: 'NotImplemented' });
  expect(await abortAbandoned(on.bucket, 0)).toBe(0);
});

test('in a bucket without a prefix nothing of another application is touched', async () => {
  const bucket = new S3Bucket({ ...bucketOptions(server), prefix: '' });
  onTestFinished(() => bucket.close());
  for (const key of [
    'backup/database.dump',
    'uploads-of-another/a',
    'a',
    'files/job/a',
    'uploads/upl',
    'media/a.enc',
  ]) {
    await server.store.initiateUpload('', key, key);
    server.store.uploadOf(key).begun = new Date(0);
  }
  expect(await abortAbandoned(bucket, 24 * 3_600_000)).toBe(3);
  expect(server.store.unfinished().map(({ key }) => key)).toEqual([
    'backup/database.dump',
    'uploads-of-another/a',
    'a',
  ]);
});

test('a storage that could not hold the largest write is not made', () => {
  expect(() => createS3Storage(on.bucket, { largestWriteBytes: 6 * 1024 ** 4 })).toThrow(
    /5 TiB.*MAX_INPUT_BYTES/,
  );
});

test('an address for callers works without a key, for this object, name and type alone', async () => {
  await put('files/a.mp3', 'audio');
  const address = presignedDownloads(on.bucket, server.endpoint);
  const url = await address('files/a.mp3', {
    contentDisposition: `attachment; filename="gr____e.mp3"; filename*=UTF-8''gr%C3%BC%C3%9Fe.mp3`,
    contentType: 'audio/mpeg',
    cacheControl: 'private, no-cache',
  });
  const answer = await fetch(url, { headers: { range: 'bytes=1-3' } });
  expect([answer.status, await answer.text()]).toEqual([206, 'udi']);
  expect(answer.headers.get('content-disposition')).toContain("filename*=UTF-8''gr%C3%BC%C3%9Fe.mp3");
  expect(answer.headers.get('content-type')).toBe('audio/mpeg');
  expect((await fetch(url.replace('a.mp3', 'b.mp3'))).status).toBe(403);
  expect((await fetch(url.replace('audio%2Fmpeg', 'text%2Fhtml'))).status).toBe(403);
  expect((await fetch(url.replace('X-Amz-Expires=60', 'X-Amz-Expires=3000'))).status).toBe(403);
  expect((await fetch(url, { method: 'DELETE' })).status).toBe(403);
});
