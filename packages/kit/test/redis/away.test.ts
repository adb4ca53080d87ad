/** Each way in which Redis is away, as a real Redis says it: to a command, in a transaction and in a script. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { spawnRedis, startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, it } from 'vitest';
import { type AwayReason, awayReason, awayReasons, isRedisAway } from '../../src/observe/away.ts';
import { createLogger } from '../../src/observe/logger.ts';
import { closeRedis, connectRedis, healthOfRedis } from '../../src/redis/connection.ts';
import { StorageUnavailable } from '../../src/storage/storage.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(...settings: string[]): Promise<TestRedis> {
  const server = await startTestRedis(settings);
  closing.push(() => server.close());
  return server;
}

/** Without the ready check, which would wait for a server that loads. */
function clientOf(socketPath: string): Redis {
  const client = new Redis(socketPath, { enableReadyCheck: false, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  closing.push(() => client.disconnect());
  return client;
}

/** A server that the operator has brought into a state. */
async function brought(
  settings: readonly string[],
  change: (operator: Redis, folder: string) => Promise<unknown> = async () => undefined,
): Promise<Redis> {
  const { socketPath } = await start(...settings);
  const client = clientOf(socketPath);
  await change(client, dirname(socketPath));
  return client;
}

async function loading(): Promise<Redis> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-loading-'));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  const socketPath = join(folder, 's');
  const settings = [
    '--port',
    '0',
    '--unixsocket',
    socketPath,
    '--dir',
    folder,
    '--enable-debug-command',
    'local',
  ];
  const first = await spawnRedis(settings);
  await clientOf(socketPath).call('DEBUG', 'POPULATE', '20000');
  await clientOf(socketPath).save();
  await first.end('SIGKILL');
  const slow = ['--key-load-delay', '2000', '--loading-process-events-interval-bytes', '1024'];
  const second = await spawnRedis([...settings, ...slow], /Loading RDB/);
  closing.push(() => second.end('SIGKILL'));
  return clientOf(socketPath);
}

const refusals: [AwayReason, () => Promise<Redis>][] = [
  ['redis_full', () => brought([], (redis) => redis.config('SET', 'maxmemory', '1'))],
  [
    'redis_not_persisting',
    () =>
      brought(['--save', '3600 1'], async (redis, folder) => {
        // A folder where its file is to be.
        await mkdir(join(folder, 'dump.rdb'));
        // It does not end before it has saved.
        closing.push(() => rm(join(folder, 'dump.rdb'), { recursive: true }));
        await redis.bgsave();
        await until('saving has failed', async () => /last_bgsave_status:err/.test(await redis.info()));
      }),
  ],
  ['redis_read_only', () => brought(['--replicaof', '127.0.0.1 1'])],
  ['redis_few_replicas', () => brought(['--min-replicas-to-write', '1'])],
  [
    'redis_no_master',
    () =>
      brought([
        '--replicaof',
        '127.0.0.1 1',
        '--replica-serve-stale-data',
        'no',
        '--replica-read-only',
        'no',
      ]),
  ],
  ['redis_cluster_down', () => brought(['--cluster-enabled', 'yes'])],
  ['redis_loading', loading],
];

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'it was taken',
    (error: unknown) => error,
  );

it.each(refusals)('%s', async (reason, redis) => {
  const client = await redis();
  const failures = [
    await failureOf(client.set('a', '1')),
    await failureOf(client.eval("return redis.call('SET', KEYS[1], '1')", 1, 'a')),
    await failureOf(client.multi().set('a', '1').exec()),
    new Error('a step failed', { cause: await failureOf(client.set('a', '1')) }),
  ];
  expect(failures.map(awayReason)).toEqual([reason, reason, reason, reason]);
  expect(await healthOfRedis(client)).toEqual({
    state: ['redis_no_master', 'redis_cluster_down', 'redis_loading'].includes(reason)
      ? 'down'
      : 'refuses-writes',
    reason,
  });
});

it('redis_timeout and redis_unreachable', async () => {
  const server = await start();
  const redis = connectRedis({
    url: server.url,
    role: 'request',
    deadlineMs: 200,
    logger: createLogger('silent'),
  });
  closing.push(() => closeRedis(redis));
  await redis.ping();
  process.kill(server.pid, 'SIGSTOP');
  expect(awayReason(await failureOf(redis.get('a')))).toBe('redis_timeout');
  process.kill(server.pid, 'SIGKILL');
  await until(
    'it is known to be gone',
    async () => awayReason(await failureOf(redis.get('a'))) === 'redis_unreachable',
  );
});

it('the storage, and whatever is not ours', () => {
  const gone = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
  expect(awayReason(new StorageUnavailable('EIO', 'the bucket', undefined))).toBe('storage');
  expect(awayReason(gone)).toBe('storage');
  expect(isRedisAway(gone)).toBe(false);
  const others = [
    new Error('{"code":"DOWNLOAD_FAILED","details":"Socket timeout"}'),
    new Error('fetch failed', { cause: gone }),
    new Error('WRONGTYPE Operation against a key'),
    'OOM',
    undefined,
  ];
  expect(others.map(awayReason)).toEqual(others.map(() => undefined));
});

it('every reason stands in this file', () => {
  const tried = [...refusals.map(([reason]) => reason), 'redis_timeout', 'redis_unreachable', 'storage'];
  expect([...tried].sort()).toEqual([...awayReasons].sort());
});
