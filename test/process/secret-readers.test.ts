/** Which secrets each process reads, by what it asks its configuration for: as the chart and Compose hand them out. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { secretReaders } from 'soundpost-kit/settings/environment';
import { startTestRedis } from 'soundpost-testing/redis-server';
import { S3Server } from 'soundpost-testing/s3/s3-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startApi } from '../../src/api/start.ts';
import { runGateway } from '../../src/gateway/start.ts';
import { type Config, loadConfig } from '../../src/process/config.ts';
import {
  observed,
  openFoundation,
  openRedis,
  openStores,
  type Resources,
  type Stores,
  withSecrets,
} from '../../src/process/resources.ts';
import { startHealthServer } from '../../src/worker/health.ts';
import { startWorker } from '../../src/worker/start.ts';

let redis: Awaited<ReturnType<typeof startTestRedis>>;
let s3: S3Server;
let folder: string;
beforeAll(async () => {
  redis = await startTestRedis();
  s3 = await S3Server.start();
  folder = await mkdtemp(join(tmpdir(), 'soundpost-secrets-'));
});
afterAll(async () => {
  await redis.close();
  await s3.close();
  await rm(folder, { recursive: true });
});

type Part = (typeof secretReaders.SECRET_KEY)[number];
const isSecret = (name: string): boolean => name in secretReaders;

/** Starts a process as `soundpost <part>` does; what it returns stops it. */
const starts: Readonly<
  Record<Part, (resources: Resources, stores: Stores) => Promise<() => Promise<unknown>>>
> = {
  async api(resources, stores) {
    const api = await startApi(resources, stores);
    return () => api.close(0);
  },
  async gateway(resources) {
    const gateway = await runGateway(resources);
    return () => gateway.close();
  },
  async worker(resources, stores) {
    const worker = await startWorker(resources, stores);
    const about = { redis: stores.redis, probes: resources.probes, sandbox: 'none' as const };
    const health = await startHealthServer('127.0.0.1', 0, about, observed('worker', resources));
    return () => Promise.all([worker.close(0), health.close()]);
  },
};

/** Every secret is set; the names of those that the process read. */
async function readBy(part: Part): Promise<string[]> {
  const read = new Set<string>();
  const config: Config = loadConfig({
    ...s3.environment(''),
    ...{ API_PORT: '0', GATEWAY_PORT: '0', WORKER_PORT: '0', LOG_LEVEL: 'silent', CONSOLE: 'off' },
    ...{ DATA_DIR: join(folder, part), REDIS_URL: redis.url, SANDBOX: 'off' },
    ...{ TRANSCRIBER_URL: 'http://127.0.0.1:9/v1', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
    ...{ SECRET_KEY: 's'.repeat(32), BOOTSTRAP_API_KEY: `sp_abcdefgh_${'b'.repeat(32)}` },
    ...{ ADMIN_KEY: 'a'.repeat(16), GATEWAY_EVENTS_TOKEN: 'e'.repeat(16), GATEWAY_API_KEY: 'g'.repeat(16) },
    ...{ TRANSCRIBER_API_KEY: 't', METRICS_TOKEN: 'm'.repeat(16), OTEL_EXPORTER_OTLP_HEADERS: 'a=b' },
    OUTBOUND_PROXY: 'http://127.0.0.1:9',
  });
  for (const name of Object.keys(secretReaders)) expect([name, name in config]).toEqual([name, true]);
  const watched = new Proxy(config, {
    get(target, name: keyof Config) {
      if (isSecret(name)) read.add(name);
      return target[name];
    },
  });
  const foundation = await openFoundation(watched, [part]);
  const connection = openRedis(foundation);
  const resources = await withSecrets(foundation, connection);
  const stores = openStores(resources, connection);
  const stop = await starts[part](resources, stores);
  await stop();
  stores.close();
  connection.disconnect();
  await foundation.close();
  return [...read].toSorted();
}

it.each(['api', 'gateway', 'worker'] as const)(
  '%s reads those that the table says, and no other',
  async (part) => {
    const said = Object.entries(secretReaders)
      .filter(([, readers]) => (readers as readonly Part[]).includes(part))
      .map(([name]) => name)
      // The command `api` reads it, before the API starts.
      .filter((name) => name !== 'BOOTSTRAP_API_KEY');
    expect(await readBy(part)).toEqual(said.toSorted());
  },
);
