/** Who asks whether the service can work learns of a Redis that answers and takes nothing. Broken by hand: with a read in place of the write, all are 200. */
import { mkdir, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { Probes } from 'soundpost-kit/observe/probes';
import { closeRedis, connectRedis, type Redis as OurRedis } from 'soundpost-kit/redis/connection';
import { fetch } from 'soundpost-testing/http';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startHealthServer } from '../../src/worker/health.ts';
import { useService } from '../api/api-fixture.ts';

const service = useService({ parts: ['gateway'] });

let operator: Redis;
let workersRedis: OurRedis;
let worker: Awaited<ReturnType<typeof startHealthServer>>;
beforeAll(async () => {
  const { socketPath, url } = service().redis;
  operator = new Redis(socketPath);
  workersRedis = connectRedis({ url, role: 'request', logger: pino({ level: 'silent' }) });
  worker = await startHealthServer('127.0.0.1', 0, {
    redis: workersRedis,
    probes: new Probes(pino({ level: 'silent' })),
    sandbox: 'none',
  });
});
afterAll(async () => {
  await worker.close();
  await closeRedis(workersRedis);
  operator.disconnect();
});

interface Health {
  readonly status: number;
  readonly redis: unknown;
  readonly live: number;
}

/** Of the API, the gateway and the worker. */
async function healths(): Promise<Health[]> {
  const bases = [service().url, service().gatewayUrl, `http://127.0.0.1:${worker.port}`];
  return Promise.all(
    bases.map(async (base) => {
      const ready = await fetch(`${base}/health/ready`);
      const body = (await ready.json()) as { redis?: string; checks?: { redis: string } };
      const { status: live } = await fetch(`${base}/health/live`);
      return { status: ready.status, redis: body.redis ?? body.checks?.redis, live };
    }),
  );
}

const ready: readonly Health[] = [
  { status: 200, redis: 'up', live: 200 },
  { status: 200, redis: 'ok', live: 200 },
  { status: 200, redis: 'up', live: 200 },
];

const dump = () => join(dirname(service().redis.socketPath), 'dump.rdb');

const refusals: [string, () => Promise<unknown>, () => Promise<unknown>][] = [
  ['is full', () => operator.config('SET', 'maxmemory', '1'), () => operator.config('SET', 'maxmemory', '0')],
  [
    'cannot save',
    async () => {
      // A folder where its file is to be.
      await mkdir(dump());
      await operator.config('SET', 'save', '3600 1');
      await operator.bgsave();
      await until('saving has failed', async () => /rdb_last_bgsave_status:err/.test(await operator.info()));
    },
    async () => {
      await rmdir(dump());
      await operator.save();
    },
  ],
  ['is a replica', () => operator.replicaof('127.0.0.1', 1), () => operator.replicaof('NO', 'ONE')],
];

it.each(refusals)(
  'a Redis that %s takes all out of readiness, and none out of life',
  async (_what, refuse, recover) => {
    await expect.poll(healths).toEqual(ready);
    await refuse();
    await expect.poll(healths).toEqual(Array(3).fill({ status: 503, redis: 'refuses-writes', live: 200 }));
    expect(await service().call('GET', '/v1/status/job_0123456789abcdef')).toMatchObject({ status: 503 });
    await recover();
    await expect.poll(healths).toEqual(ready);
  },
);
