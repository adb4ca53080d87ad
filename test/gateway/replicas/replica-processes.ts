/** Several gateways on one Redis, each a process of its own that a test can kill, stop and end. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { TestRedis } from '../../redis-server.ts';
import { until } from '../../until.ts';
import { caller, type GatewaySetting, type TestGateway } from '../gateway-fixture.ts';

/** Shorter than in production, and long enough for a machine that is busy. */
export const timing = { leaseMs: 4000, lookMs: 250, marginMs: 1000 };

export interface Replica {
  readonly url: string;
  readonly call: TestGateway['call'];
  readonly child: ChildProcess;
  /** What it has logged until now. */
  log(): string;
  /** Resolves when it is gone. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>;
}

export interface Replicas {
  /** Those that were started and not ended, oldest first. */
  readonly running: readonly Replica[];
  start(more?: Partial<GatewaySetting>): Promise<Replica>;
  /** Who has the instance now; waits until somebody has. */
  ownerOf(instance: string): Promise<Replica>;
  /** Another than the owner. */
  othersOf(instance: string): Promise<Replica[]>;
  close(): Promise<void>;
}

export function replicasOn(redis: TestRedis, setting: Omit<GatewaySetting, 'redisUrl'>): Replicas {
  const running: Replica[] = [];
  let started = 0;
  const client = new Redis(redis.socketPath);
  const urlOfOwner = async (instance: string): Promise<string | undefined> => {
    const id = (await client.hget('{soundpost}:gateway:instance-names', instance)) ?? '';
    const holder = await client.hget('{soundpost}:gateway:owners', id);
    const replica = holder?.split(' ')[1] ?? '';
    const place = await client.hget('{soundpost}:gateway:replica-places', replica);
    const expires = Number(await client.zscore('{soundpost}:gateway:replicas', replica));
    return place === null || expires < Date.now() ? undefined : JSON.parse(place).url;
  };
  const ownerOf = (instance: string): Promise<Replica> =>
    until(`somebody has ${instance}`, async () => {
      const url = await urlOfOwner(instance);
      return running.find((replica) => replica.url === url);
    });
  return {
    running,
    ownerOf,
    async othersOf(instance) {
      const owner = await ownerOf(instance);
      return running.filter((replica) => replica !== owner);
    },
    async start(more = {}) {
      started += 1;
      // A home of its own, as on another machine: nobody sees that it has died.
      const replica = { timing, home: `machine-${started}`, ...more.replica };
      const whole: GatewaySetting = { ...setting, ...more, redisUrl: redis.url, replica };
      const child = fork(join(import.meta.dirname, '../gateway-process.ts'), [JSON.stringify(whole)], {
        env: { ...process.env, TEST_LOG_LEVEL: 'info' },
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      });
      let log = '';
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
      const ended = once(child, 'exit');
      const [{ port }] = (await Promise.race([
        once(child, 'message'),
        ended.then(() => Promise.reject(new Error(`the gateway process ended at once:\n${log}`))),
      ])) as [{ port: number }];
      const url = `http://127.0.0.1:${port}`;
      const found: Replica = {
        url,
        call: caller(url),
        child,
        log: () => log,
        async end(signal) {
          child.kill(signal);
          await ended;
          running.splice(running.indexOf(found), 1);
        },
      };
      running.push(found);
      return found;
    },
    async close() {
      await Promise.all([...running].map((replica) => replica.end('SIGKILL')));
      client.disconnect();
    },
  };
}
