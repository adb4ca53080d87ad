/** One API process and its Redis as in production, and load on them. */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Redis } from 'ioredis';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';

import { descendants } from 'soundpost-testing/processes';
import type { ServiceHome } from 'soundpost-testing/service';
import { openHome } from './home.ts';
import type { Load, Loaded } from './load.ts';

export interface ApiBench {
  readonly port: number;
  readonly redis: Redis;
  readonly redisSocket: string;
  /** Key of every request; its tenant is {@link ApiBench.tenant}. */
  readonly key: string;
  readonly tenant: string;
  readonly folder: string;
  /** Runs a script of this folder in a process of its own: what is compared with. */
  script(name: string, ...args: readonly string[]): ReturnType<ServiceHome['run']>;
  /** Another key, of a tenant of its own. */
  newKey(): Promise<string>;
  /** Raw bytes of a request with the key. */
  request(method: string, path: string, body?: object): string;
  /** Seconds of processor time that the API has used so far. */
  usedSeconds(): number;
  /** Nothing is left in Redis but the key. */
  empty(): Promise<void>;
  close(): Promise<void>;
}

const TICKS_PER_SECOND = 100;

/**
 * `soundpost api` in a home of its own. Records of the log go to a file.
 */
export async function openApiBench(environment: Readonly<Record<string, string>> = {}): Promise<ApiBench> {
  const { folder, home, redisUrl, remove } = await openHome({ LOG_LEVEL: 'info', ...environment });
  const redisSocket = redisUrl.slice('unix://'.length);
  const redis = new Redis(redisSocket);
  const profiled =
    process.env.BENCH_CPU_PROF === undefined ? '' : `--cpu-prof --cpu-prof-dir=${process.env.BENCH_CPU_PROF}`;
  const log = join(folder, 'api.log');
  const api = home.run([
    'sh',
    '-c',
    `exec "${process.execPath}" --max-semi-space-size=4 ${profiled} src/main.ts api 2>>"${log}"`,
  ]);
  const port = Number(new URL(await api.says(/^API\s+(http\S+)/m)).port);
  const kept = await Promise.all(
    (await redis.keys(`${KEY_PREFIX}:sp:key*`)).map(async (name) => ({
      name,
      value: await redis.dumpBuffer(name),
    })),
  );
  const tenant = home.key.split('_')[1] ?? '';
  return {
    port,
    redis,
    redisSocket,
    key: home.key,
    tenant,
    folder,
    script: (name, ...args) => home.run([process.execPath, join('bench', 'measuring', name), ...args]),
    async newKey() {
      const create = ['keys', 'create', '--name', 'bench', '--json'];
      const made = home.run([process.execPath, 'src/main.ts', ...create]);
      return made.says(/"key": ?"(sp_\w+)"/);
    },
    request(method, path, body) {
      const text = body === undefined ? '' : JSON.stringify(body);
      const about =
        body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${text.length}\r\n`;
      return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nx-api-key: ${home.key}\r\naccept: */*\r\n${about}\r\n${text}`;
    },
    usedSeconds: () => [api.pid, ...descendants(api.pid)].reduce((sum, pid) => sum + usedSeconds(pid), 0),
    async empty() {
      await redis.flushall('SYNC');
      for (const { name, value } of kept) await redis.restore(name, 0, value ?? '');
    },
    async close() {
      api.signal('SIGTERM');
      await api.exited;
      redis.disconnect();
      await remove();
    },
  };
}

/** Processor time of a process so far. */
export function usedSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export async function load(workerData: Load): Promise<Loaded> {
  const worker = new Worker(new URL('./load.ts', import.meta.url), { workerData });
  const [loaded] = (await once(worker, 'message')) as [Loaded];
  await worker.terminate();
  return loaded;
}

/** The request of somebody who wants a talk as mp3 and to be told when it is ready; nothing has to be resolved for it. */
export const typicalJob = {
  source: { type: 'url', url: 'http://127.0.0.1:9/videos/2026/talk-1080p.mp4?token=2f9a6c1e' },
  output: { format: 'mp3', quality: 'high' },
} as const;
export const typicalAllow = { OUTBOUND_ALLOW: '127.0.0.1:9' };
