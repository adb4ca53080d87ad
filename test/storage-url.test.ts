/** Where files are kept, as STORAGE_URL and its companions say. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ConfigurationError, loadConfig } from '../src/config.ts';
import { fetch } from './http.ts';
import { startTestRedis } from './redis-server.ts';
import { S3Server } from './s3/s3-server.ts';
import { ServiceHome } from './service.ts';

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

/** Whether a process that has loaded all there is, and opened its storage, has loaded the SDK. */
async function loadsSdk(environment: Record<string, string>): Promise<boolean> {
  const source = (path: string) => JSON.stringify(new URL(`../src/${path}`, import.meta.url));
  const program = `
    import module from 'node:module';
    import { loadConfig } from ${source('config.ts')};
    import { openStorage } from ${source('backing-services.ts')};
    import ${source('cli/serve.ts')};
    (await openStorage(loadConfig())).close();
    const loaded = Object.keys(module._cache).filter((path) => path.includes('@aws-sdk'));
    console.log(loaded.length > 0);
  `;
  const options = {
    env: { PATH: process.env.PATH, ...environment },
    cwd: join(import.meta.dirname, '..'),
  };
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], options);
  return stdout.trim() === 'true';
}

test('the SDK is loaded where a bucket is used, and nowhere else', async () => {
  expect(await loadsSdk({})).toBe(false);
  expect(await loadsSdk({ STORAGE_URL: 's3://bucket' })).toBe(true);
});

describe('a bucket that is not ours to use stops the start, with the remedy', () => {
  test.each([
    ['a wrong secret', { S3_SECRET_ACCESS_KEY: 'wrong' }, 'check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY'],
    ['a bucket that does not exist', { STORAGE_URL: 's3://another' }, 'create it, or correct STORAGE_URL'],
    ['another region', { S3_REGION: 'us-west-2' }, 'S3_REGION'],
  ])('%s', async (_what, wrong, remedy) => {
    const s3 = await S3Server.start();
    const redis = await startTestRedis();
    const home = await ServiceHome.make({
      REDIS_URL: redis.url,
      SECRET_KEY: 'a secret of these tests, of 32 bytes or more',
      ...s3.environment(),
      ...wrong,
    });
    try {
      const api = home.start('api');
      expect(await api.exited).toBe(2);
      expect(api.output()).toContain(remedy);
    } finally {
      await home.remove();
      await redis.close();
      await s3.close();
    }
  });

  test('one that is away does not', async () => {
    const s3 = await S3Server.start();
    s3.fault = () => ({ kind: 'cut' });
    const redis = await startTestRedis();
    const home = await ServiceHome.make({
      REDIS_URL: redis.url,
      SECRET_KEY: 'a secret of these tests, of 32 bytes or more',
      ...s3.environment(),
    });
    try {
      const api = await home.start('api').says(/^API\s+(http\S+)/m);
      expect((await fetch(`${api}/health/ready`)).status).toBe(200);
    } finally {
      await home.remove();
      await redis.close();
      await s3.close();
    }
  });
});
