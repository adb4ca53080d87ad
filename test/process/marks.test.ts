/** The marks by which Redis and the results know each other: who writes them, and what is refused because of them. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from 'soundpost-kit/observe/logger';
import { Probes } from 'soundpost-kit/observe/probes';
import type { Redis } from 'soundpost-kit/redis/connection';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import { S3Bucket } from 'soundpost-kit/storage/s3-bucket';
import { createS3Storage } from 'soundpost-kit/storage/s3-storage';
import type { Storage } from 'soundpost-kit/storage/storage';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { bucketOptions } from 'soundpost-testing/s3/s3-fixture';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { until } from 'soundpost-testing/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lookAtMarks, Marks, RESULTS_MARK } from '../../src/process/marks.ts';

const KEY = '{soundpost}:sp:mark';
const logger = createLogger('silent');

let server: TestRedis;
let redis: Redis;
let folder = '';
let storage: Storage;
const running: Marks[] = [];

beforeAll(async () => {
  server = await startTestRedis(['--enable-debug-command', 'yes']);
  redis = connectPatiently(server.url);
});
beforeEach(async () => {
  await redis.flushall();
  folder = await mkdtemp(join(tmpdir(), 'soundpost-marks-'));
  storage = createFileStorage({ root: folder });
});
afterEach(async () => {
  await stopAll();
  await rm(folder, { recursive: true });
});
afterAll(async () => {
  redis.disconnect();
  await server.close();
});

function marks(options: { adopt?: boolean; storage?: Storage; place?: string; probes?: Probes } = {}): Marks {
  const probes = new Probes(logger);
  const made = new Marks({ redis, storage, place: folder, adopt: false, probes, logger, ...options });
  running.push(made);
  return made;
}

/** As a process starts. */
async function start(options: Parameters<typeof marks>[0] = {}): Promise<{ refused: Promise<never> }> {
  const made = marks(options);
  await made.demand();
  return made.start();
}

async function stopAll(): Promise<void> {
  for (const made of running.splice(0)) await made.close();
}

const stateNow = async (): Promise<string> => (await lookAtMarks({ redis, storage, place: folder })).kind;
const idOfRedis = (): Promise<string | null> => redis.hget(KEY, 'id');
const idOfResults = async (): Promise<string> =>
  JSON.parse(await readFile(join(folder, RESULTS_MARK), 'utf8')).id;
const refusal = (options: Parameters<typeof marks>[0] = {}): Promise<Error> =>
  start(options).then(
    () => new Error('it was not refused'),
    (error: Error) => error,
  );

describe('two without a mark', () => {
  it('get one, also where there are data of before', async () => {
    await redis.set('{soundpost}:sp:keys', 'of before');
    expect(await stateNow()).toBe('new');
    expect(await redis.exists(KEY)).toBe(0);
    await start();
    expect(await idOfResults()).toBe(await idOfRedis());
    await start();
    expect(await stateNow()).toBe('same');
  });

  it('get the same one by all processes that start at once', async () => {
    await Promise.all(Array.from({ length: 8 }, () => start()));
    expect(await stateNow()).toBe('same');
  });

  it('get it by the next start where the first one was killed in the middle', async () => {
    await redis.hset(KEY, { id: 'begun', renewals: 0 });
    await start();
    expect([await idOfRedis(), await idOfResults()]).toEqual(['begun', 'begun']);
  });
});

describe('refused, with what it is and what to do', () => {
  beforeEach(async () => {
    await start();
    await stopAll();
  });

  it.each<[string, () => Promise<unknown>, RegExp]>([
    ['a lost Redis', () => redis.flushall(), /^Redis does not know the results in .*restore Redis/],
    [
      'a folder that was moved or emptied',
      () => rm(join(folder, RESULTS_MARK)),
      /^Redis knows results \(mark \w{8}\) that are not in .*bring them back/,
    ],
    [
      'a folder of another installation',
      () => writeFile(join(folder, RESULTS_MARK), '{"id": "another one", "renewals": 1}'),
      /belong to different installations: correct REDIS_URL/,
    ],
    [
      'a mark that was damaged',
      () => writeFile(join(folder, RESULTS_MARK), '{"id": "anoth'),
      /\(mark damaged\) belong to different installations/,
    ],
  ])('%s', async (_what, damage, sentence) => {
    await damage();
    const error = await refusal();
    expect(error.name).toBe('ConfigurationError');
    expect(error.message).toMatch(sentence);
    expect(error.message).toContain('start once with --adopt (ADOPT=1)');
    // Nothing was changed: it stays refused.
    expect((await refusal()).message).toBe(error.message);
    await start({ adopt: true });
    await stopAll();
    await start();
    expect(await idOfResults()).toBe(await idOfRedis());
  });

  it('a Redis that was restored from before the last run', async () => {
    const backup = await redis.hgetall(KEY);
    await start();
    await stopAll();
    await redis.hset(KEY, backup);
    expect((await refusal()).message).toMatch(/^Redis is older than the results in .*restored from a backup/);
    await start({ adopt: true });
    expect(await stateNow()).toBe('same');
  });

  it('to all that start at once, until several adopt at once', async () => {
    await redis.flushall();
    const refused = await Promise.all(Array.from({ length: 4 }, () => refusal()));
    expect(new Set(refused.map(({ name }) => name))).toEqual(new Set(['ConfigurationError']));
    await Promise.all(Array.from({ length: 4 }, () => start({ adopt: true })));
    expect(await idOfResults()).toBe(await idOfRedis());
    await start();
  });
});

describe('a bucket', () => {
  let s3: S3Server;
  const buckets: S3Bucket[] = [];
  beforeEach(async () => {
    s3 = await S3Server.start();
  });
  afterEach(async () => {
    await stopAll();
    for (const bucket of buckets.splice(0)) bucket.close();
    await s3.close();
  });
  const below = (prefix: string): { storage: Storage; place: string } => {
    const bucket = new S3Bucket({ ...bucketOptions(s3), prefix, tries: 1 });
    buckets.push(bucket);
    return { storage: createS3Storage(bucket, { largestWriteBytes: 1024 }), place: `s3://bucket/${prefix}` };
  };

  it('that is away is not one that was emptied: it is asked again, and refused then', async () => {
    await start(below('a/'));
    await stopAll();
    s3.fault = () => ({ kind: 'answer', status: 503, code: 'SlowDown' });
    const { refused } = await start(below('a/'));
    s3.fault = () => undefined;
    await stopAll();
    await start(below('a/'));
    await stopAll();
    s3.fault = () => ({ kind: 'answer', status: 503, code: 'SlowDown' });
    const other = await start(below('b/'));
    s3.fault = () => undefined;
    await expect(other.refused).rejects.toThrow(/^Redis knows results .* that are not in s3:\/\/bucket\/b/);
    expect(await Promise.race([refused, 'fine'])).toBe('fine');
  }, 30_000);

  it('that answers nothing is not one that was emptied, also where only the mark cannot be read', async () => {
    await start(below(''));
    await stopAll();
    s3.fault = ({ method, key }) =>
      method === 'GET' && key !== '' ? { kind: 'answer', status: 403, code: 'AccessDenied' } : undefined;
    await start(below(''));
  });

  it('has a mark for each prefix', async () => {
    await start(below('a/'));
    expect((await refusal(below('b/'))).message).toMatch(/are not in s3:\/\/bucket\/b/);
    await redis.flushall();
    await start(below('b/'));
    expect(s3.contents()).toEqual([`a/${RESULTS_MARK}`, `b/${RESULTS_MARK}`]);
  });
});

it('a Redis that is only loading is not one that was emptied', async () => {
  await start();
  await stopAll();
  await redis.config('SET', 'key-load-delay', '5000');
  await redis.config('SET', 'loading-process-events-interval-bytes', '1024');
  await Promise.all(Array.from({ length: 500 }, (_, index) => redis.set(`key ${index}`, 'x'.repeat(100))));
  const other = connectPatiently(server.url);
  const reloaded = other.call('DEBUG', 'RELOAD');
  const failure = (): Promise<unknown> =>
    lookAtMarks({ redis, storage, place: folder }).then(
      () => undefined,
      (error: unknown) => error,
    );
  expect(String(await until('it is loading', failure))).toContain('LOADING');
  await reloaded;
  other.disconnect();
  await redis.config('SET', 'key-load-delay', '0');
  expect(await stateNow()).toBe('same');
});

it('two that stop belonging together while a process runs keep their marks', async () => {
  await start();
  await redis.flushall();
  await stopAll();
  expect(await redis.exists(KEY)).toBe(0);
  expect(await stateNow()).toBe('refused');
});

it('two that stop belonging together pause the jobs of a process that runs, until they are put right', async () => {
  const probes = new Probes(logger);
  await start({ probes });
  const mark = await redis.hgetall(KEY);
  await redis.flushall();
  // Once is no proof: another process may be marking both.
  expect([await probes.ask('marks'), probes.pauses('extract')]).toEqual(['same', false]);
  expect([await probes.ask('marks'), probes.pauses('extract')]).toEqual(['apart', true]);
  expect(probes.pauses('webhook')).toBe(false);
  await redis.hset(KEY, mark);
  expect([await probes.ask('marks'), probes.pauses('extract')]).toEqual(['same', false]);
});
