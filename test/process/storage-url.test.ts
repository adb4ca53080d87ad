/** Where files are kept, as STORAGE_URL and its companions say. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { ServiceHome } from 'soundpost-testing/service';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigurationError, loadConfig } from '../../src/process/config.ts';
import { checkStorage, openFoundation } from '../../src/process/resources.ts';

const run = promisify(execFile);

describe('STORAGE_URL', () => {
  test.each([
    ['s3://bucket', { bucket: 'bucket', prefix: '' }],
    ['s3://bucket/', { bucket: 'bucket', prefix: '' }],
    ['s3://my.bucket-1/soundpost', { bucket: 'my.bucket-1', prefix: 'soundpost/' }],
    ['s3://bucket/a/b_c.d/', { bucket: 'bucket', prefix: 'a/b_c.d/' }],
  ])('%s', (url, expected) => {
    expect(loadConfig({ STORAGE_URL: url }).STORAGE_URL).toEqual(expected);
  });

  test('unset, files are kept under DATA_DIR', () => {
    expect(loadConfig({}).STORAGE_URL).toBeUndefined();
  });

  test.each([
    'bucket',
    'https://bucket',
    's3://',
    's3://B',
    's3://bucket/.hidden',
    's3://bucket//a',
    's3://bucket/a b',
  ])('%s stops the start', (url) => {
    expect(() => loadConfig({ STORAGE_URL: url })).toThrow(ConfigurationError);
    expect(() => loadConfig({ STORAGE_URL: url })).toThrow('STORAGE_URL: must be s3://bucket');
  });

  test.each(['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'])('%s alone stops the start', (name) => {
    const environment = { STORAGE_URL: 's3://bucket', [name]: 'x' };
    expect(() => loadConfig(environment)).toThrow('must be set together with');
  });

  test('what belongs to a bucket stops the start where there is none', () => {
    expect(() => loadConfig({ S3_ENDPOINT: 'https://minio.example' })).toThrow(
      'S3_ENDPOINT: means nothing without STORAGE_URL=s3://bucket',
    );
  });
});

test('the SDK is loaded where a bucket is used, and nowhere else', async () => {
  const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url));
  const program = `
    import module from 'node:module';
    import { loadConfig } from ${source('process/config.ts')};
    import { openStorage } from ${source('process/backing-services.ts')};
    import ${source('cli/serve.ts')};
    const isLoaded = () => Object.keys(module._cache).some((path) => path.includes('@aws-sdk'));
    (await openStorage(loadConfig({}))).close();
    const without = isLoaded();
    (await openStorage(loadConfig({ STORAGE_URL: 's3://bucket' }))).close();
    console.log(without, isLoaded());
  `;
  const cwd = join(import.meta.dirname, '../..');
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], { cwd });
  expect(stdout.trim()).toBe('false true');
});

describe('a bucket that is not ours to use stops the start, with the remedy', () => {
  let s3: S3Server;
  let folder = '';
  beforeAll(async () => {
    s3 = await S3Server.start();
    folder = await mkdtemp(join(tmpdir(), 'soundpost-storage-'));
  });
  afterAll(async () => {
    await s3.close();
    await rm(folder, { recursive: true });
  });
  const SECRET_KEY = 'a secret of these tests, of 32 bytes or more';

  /** As a process does before it serves. */
  async function check(environment: Record<string, string>): Promise<void> {
    const config = loadConfig({
      ...{ DATA_DIR: folder, REDIS_URL: 'unix:///nowhere.sock', SECRET_KEY, LOG_LEVEL: 'silent' },
      ...s3.environment(),
      ...environment,
    });
    const foundation = await openFoundation(config, []);
    try {
      await checkStorage(foundation);
    } finally {
      await foundation.close();
    }
  }

  test.each([
    ['a wrong secret', { S3_SECRET_ACCESS_KEY: 'wrong' }, 'check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY'],
    ['a bucket that does not exist', { STORAGE_URL: 's3://another' }, 'create it, or correct STORAGE_URL'],
    ['another region', { S3_REGION: 'us-west-2' }, 'S3_REGION'],
  ])('%s', async (_what, wrong, remedy) => {
    const refusal = await check(wrong).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ConfigurationError);
    expect((refusal as Error).message).toContain(remedy);
  });

  test('of a process it is the end, with 2', async () => {
    const redis = await startTestRedis();
    const wrong = { ...s3.environment(), S3_SECRET_ACCESS_KEY: 'wrong' };
    const home = await ServiceHome.make({ REDIS_URL: redis.url, SECRET_KEY, ...wrong });
    const api = home.start('api');
    expect(await api.exited).toBe(2);
    expect(api.output()).toContain('S3_SECRET_ACCESS_KEY');
    await home.remove();
    await redis.close();
  });

  test('one that is away does not', async () => {
    s3.fault = () => ({ kind: 'cut' });
    await check({ STORAGE_DEADLINE_SECONDS: '1' });
  });
});
