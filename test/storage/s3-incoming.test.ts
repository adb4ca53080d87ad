/** Uploads that arrive in pieces in a bucket; what has to be remembered of them is in a real Redis. Each request is as good as another process. */

import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { inTime, StorageLate } from 'soundpost-kit/storage/deadline';
import { S3Incoming } from 'soundpost-kit/storage/s3-incoming';
import { ObjectNotFound } from 'soundpost-kit/storage/storage';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { PREFIX, type StorageOnS3, storageOnS3 } from 'soundpost-testing/s3/s3-fixture';
import type { S3Request } from 'soundpost-testing/s3/s3-server';
import { until } from 'soundpost-testing/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { beginUpload, IncomingStates, newUploadId, uploadStorageKey } from '../../src/jobs/uploads/record.ts';

/** The unit of all sizes here: parts are smaller than S3 takes them. Those of its own size are in test/api/s3-uploads. */
const UNIT = 64 * 1024;
const PART_BYTES = 5 * UNIT;

let redisServer: TestRedis;
let redis: Redis;
let on: StorageOnS3;

beforeAll(async () => {
  redisServer = await startTestRedis();
  redis = connectPatiently(redisServer.url);
});
afterAll(async () => {
  await closeRedis(redis);
  await redisServer.close();
});
beforeEach(async () => {
  on = await storageOnS3();
  on.server.store.leastPartBytes = PART_BYTES;
});
afterEach(() => on.close());

/** What any process makes of the same Redis and the same bucket. */
const incoming = (patienceMs = 10_000): S3Incoming =>
  new S3Incoming(on.bucket, {
    partBytesFor: () => PART_BYTES,
    states: new IncomingStates(redis),
    inTime: (operation, work) => inTime(operation, patienceMs, work),
    keyOf: uploadStorageKey,
  });

async function begun(sizeBytes: number): Promise<string> {
  const file = newUploadId();
  const expiresAtMs = Date.now() + 3_600_000;
  await beginUpload(redis, { file, tenant: 't', name: 'n', sizeBytes, expiresAtMs });
  await incoming().create(file);
  return file;
}

const keyOf = (file: string): string => `${PREFIX}uploads/${file}`;
const stored = async (file: string): Promise<Buffer> => buffer(await on.storage.read(uploadStorageKey(file)));
const tails = (): string[] => on.server.store.keys().filter((key) => key.includes('.incoming'));
const isPart = ({ method, query }: S3Request): boolean => method === 'PUT' && query.partNumber !== undefined;
const send = (file: string, bytes: Buffer, offset: number): Promise<number> =>
  incoming().write(file, Readable.from([bytes]), offset);

test.each([
  ['cut around the ends of parts', [5 * UNIT - 1, 2, 5 * UNIT - 1, 1, UNIT]],
  ['smaller than a part', [100, 100]],
])('%s it becomes the object that was sent, and leaves nothing beside it', async (_how, pieces) => {
  const content = randomBytes(pieces.reduce((sum, piece) => sum + piece, 0));
  const file = await begun(content.length);
  let offset = 0;
  for (const piece of pieces) {
    offset = await send(file, content.subarray(offset, offset + piece), offset);
    expect(await incoming().sizeOf(file)).toBe(offset);
    expect(tails().length).toBeLessThanOrEqual(2);
  }
  expect(on.server.store.keys()).not.toContain(keyOf(file));
  await incoming().handOver(file);
  expect((await stored(file)).equals(content)).toBe(true);
  expect(on.server.contents()).toEqual([keyOf(file)]);
  expect(await incoming().sizeOf(file)).toBeUndefined();
});

test('the parts are listed once, page by page', async () => {
  const content = randomBytes(15 * UNIT + 1);
  const file = await begun(content.length);
  await send(file, content, 0);
  await incoming().handOver(file);
  const listings = on.server.requests.filter(({ method, query }) => method === 'GET' && 'uploadId' in query);
  expect(listings.map(({ query }) => query['part-number-marker'])).toEqual([undefined, '3']);
});

test('what arrived before the sender hung up stays, to the byte', async () => {
  const content = randomBytes(8 * UNIT);
  const file = await begun(content.length);
  let offset = 0;
  for (const end of [100_000, 6 * UNIT + 3, 6 * UNIT + 4]) {
    const cut = new Error('the sender hung up');
    const from = offset;
    const source = Readable.from(
      (async function* () {
        for (let at = from; at < end; at += 50_000) yield content.subarray(at, Math.min(end, at + 50_000));
        throw cut;
      })(),
    );
    await expect(incoming().write(file, source, offset)).rejects.toBe(cut);
    offset = (await incoming().sizeOf(file)) ?? 0;
    expect(offset).toBe(end);
  }
  await send(file, content.subarray(offset), offset);
  await incoming().handOver(file);
  expect((await stored(file)).equals(content)).toBe(true);
});

test('what the bucket did not take does not count, and the sender is no longer listened to', async () => {
  const content = randomBytes(11 * UNIT);
  const file = await begun(content.length);
  on.server.fault = (request) =>
    isPart(request) && request.query.partNumber === '2'
      ? { kind: 'answer', status: 403, code: 'AccessDenied' }
      : undefined;
  const source = Readable.from(
    (function* () {
      for (let at = 0; at < content.length; at += 64 * 1024) yield content.subarray(at, at + 64 * 1024);
    })(),
  );
  await expect(incoming().write(file, source, 0)).rejects.toMatchObject({ code: 'EACCES' });
  expect(source.destroyed).toBe(true);
  expect(await incoming().sizeOf(file)).toBe(5 * UNIT);
  on.server.fault = () => undefined;
  await send(file, content.subarray(5 * UNIT), 5 * UNIT);
  await incoming().handOver(file);
  expect((await stored(file)).equals(content)).toBe(true);
});

test.each([5 * UNIT, 6 * UNIT])('the last write, from byte %i, can be taken back', async (offset) => {
  const content = randomBytes(7 * UNIT);
  const wrong = randomBytes(7 * UNIT - offset);
  const file = await begun(content.length);
  await send(file, content.subarray(0, offset - UNIT), 0);
  await send(file, content.subarray(offset - UNIT, offset), offset - UNIT);
  for (const some of [wrong.subarray(0, UNIT), wrong.subarray(0, UNIT / 2), wrong]) {
    await send(file, some, offset);
    await incoming().truncate(file, offset);
    expect(await incoming().sizeOf(file)).toBe(offset);
  }
  await send(file, content.subarray(offset), offset);
  await incoming().handOver(file);
  expect((await stored(file)).equals(content)).toBe(true);
  expect(on.server.contents()).toEqual([keyOf(file)]);
});

test('more than was announced is refused', async () => {
  const file = await begun(1000);
  await expect(send(file, randomBytes(1001), 0)).rejects.toBeInstanceOf(RangeError);
});

describe('a process that died', () => {
  test('after the object was complete, but before it could say so, is made up for', async () => {
    const content = randomBytes(6 * UNIT);
    const file = await begun(content.length);
    await send(file, content.subarray(0, UNIT), 0);
    await send(file, content.subarray(UNIT), UNIT);
    const before = await new IncomingStates(redis).read(file);
    await incoming().handOver(file);
    await new IncomingStates(redis).note(file, before ?? {});
    await incoming().handOver(file);
    expect((await stored(file)).equals(content)).toBe(true);
  });

  test('between storing and noting: the bytes are sent again', async () => {
    const content = randomBytes(11 * UNIT);
    const file = await begun(content.length);
    await send(file, content.subarray(0, 10 * UNIT), 0);
    // As if the second part had not been noted.
    await new IncomingStates(redis).note(file, { arrivedBytes: 5 * UNIT });
    await send(file, content.subarray(5 * UNIT), 5 * UNIT);
    await incoming().handOver(file);
    expect((await stored(file)).equals(content)).toBe(true);
  });

  test('leaves a record that does not come back after it was erased', async () => {
    const file = await begun(1000);
    await redis.del(`{soundpost}:sp:upload:${file}`);
    await new IncomingStates(redis).note(file, { arrivedBytes: 5 });
    expect(await redis.exists(`{soundpost}:sp:upload:${file}`)).toBe(0);
  });
});

test('removing leaves neither parts nor tails, and may be done again', async () => {
  const file = await begun(12 * UNIT);
  await send(file, randomBytes(6 * UNIT), 0);
  expect(on.server.contents()).toHaveLength(2);
  await incoming().remove(file);
  expect(on.server.contents()).toEqual([]);
  await incoming().remove(file);
  await incoming().remove('upl_0000000000000000');
});

test('an upload that a rule of the bucket has removed is not there', async () => {
  const content = randomBytes(6 * UNIT);
  const file = await begun(content.length);
  await send(file, content.subarray(0, 5 * UNIT), 0);
  on.server.store.abort(on.server.store.unfinished()[0]?.uploadId);
  await expect(send(file, content.subarray(5 * UNIT), 5 * UNIT)).rejects.toBeInstanceOf(ObjectNotFound);
});

test('a bucket that hangs fails a request in time', async () => {
  const file = await begun(1000);
  on.server.fault = () => ({ kind: 'hang' });
  const impatient = incoming(200);
  const bytes = Readable.from([randomBytes(10)]);
  // Of the request's own patience: the bucket itself waits for much longer, and fails otherwise.
  await expect(impatient.write(file, bytes, 0)).rejects.toThrow(StorageLate);
  await expect(impatient.create(newUploadId())).rejects.toThrow(StorageLate);
  await expect(impatient.remove(file)).rejects.toThrow(StorageLate);
});

test('a bucket that answers, but slowly, takes the bytes: they are not what is given up in time', async () => {
  const content = randomBytes(6 * UNIT);
  const file = await begun(content.length);
  await send(file, content.subarray(0, UNIT), 0);
  await send(file, content.subarray(UNIT, 2 * UNIT), UNIT);
  on.server.fault = ({ method, key }) =>
    method !== 'HEAD' && key.includes('.incoming') ? { kind: 'late', until: sleep(1600) } : undefined;
  const slow = (from: number, to: number): Promise<number> =>
    incoming(1000).write(file, Readable.from([content.subarray(from, to)]), from);
  expect(await slow(2 * UNIT, 5 * UNIT)).toBe(5 * UNIT);
  expect(await slow(5 * UNIT, 6 * UNIT)).toBe(6 * UNIT);
  await incoming().handOver(file);
  expect((await stored(file)).equals(content)).toBe(true);
});

test('a removal that comes late takes nothing that was stored meanwhile', async () => {
  const content = randomBytes(7 * UNIT);
  const file = await begun(content.length);
  await send(file, content.subarray(0, 5 * UNIT), 0);
  await send(file, randomBytes(UNIT), 5 * UNIT);
  await incoming().truncate(file, 5 * UNIT);
  const { promise: later, resolve: release } = Promise.withResolvers<void>();
  let held = 0;
  on.server.fault = ({ method }) =>
    method === 'DELETE' && held++ === 0 ? { kind: 'late', until: later } : undefined;
  const first = Readable.from([content.subarray(5 * UNIT, 6 * UNIT)]);
  const offset = await incoming(300)
    .write(file, first, 5 * UNIT)
    .catch(() => 5 * UNIT);
  const next = offset + UNIT / 2;
  await send(file, content.subarray(offset, next), offset);
  release();
  await until('it is done, if it was asked for', () => held === 0 || tails().length === 0);
  await send(file, content.subarray(next), next);
  await incoming().handOver(file);
  expect((await stored(file)).equals(content)).toBe(true);
  expect(on.server.contents()).toEqual([keyOf(file)]);
});

test('a part is filled while the one before it is on its way, and no further', async () => {
  const content = randomBytes(20 * UNIT);
  const file = await begun(content.length);
  on.server.fault = (request) => (isPart(request) ? { kind: 'hang' } : undefined);
  let taken = 0;
  const source = Readable.from(
    (function* () {
      for (; taken < content.length; taken += UNIT) yield content.subarray(taken, taken + UNIT);
    })(),
  );
  const writing = incoming().write(file, source, 0);
  writing.catch(() => undefined);
  await until('the first part is on its way', () => on.server.requests.some(isPart));
  await until('a second one is filled', () => taken >= 10 * UNIT);
  expect(on.server.requests.filter(isPart)).toHaveLength(1);
  expect(taken).toBeLessThanOrEqual(13 * UNIT);
  source.destroy(new Error('enough'));
  on.server.fault = () => undefined;
  on.server.cutConnections();
  await expect(writing).rejects.toThrow();
});
