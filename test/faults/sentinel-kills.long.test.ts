/**
 * The master of Redis is killed again and again: after each time jobs are accepted and done again within 10 s, by the processes that were there, and the gateway
 * answers. A connection that ioredis gives up while Sentinels tell of another master would leave one of them without Redis for good.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { debianPackages, programOf } from 'soundpost-testing/debian-packages';
import { fetch } from 'soundpost-testing/http';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, it } from 'vitest';
import { percentile, report } from './runs.ts';
import { SentinelSet } from './sentinel-set.ts';
import { LONG_LOCKS, Stand } from './stand.ts';

interface Server {
  readonly name: string;
  /** In Debian 13; undefined: that of this machine. */
  readonly package?: string;
  readonly kills: number;
}
const servers: readonly Server[] = [
  { name: 'Redis of this machine', kills: 100 },
  { name: 'Redis 8', package: 'redis-server', kills: 50 },
  { name: 'Valkey 8', package: 'valkey-server', kills: 50 },
];
const EVERY_MS = 250;
const RECOVERED_WITHIN_MS = 10_000;

let redis: SentinelSet;
let stand: Stand;
afterEach(() => stand.close());

/** @throws where the server cannot be had here, with the reason */
function programOfServer({ package: name }: Server): readonly string[] | undefined {
  if (name === undefined) return undefined;
  const made = debianPackages(name, [name]);
  if ('missing' in made) throw new Error(made.missing);
  return programOf(made.root, `usr/bin/${name}`);
}

let count = 0;
/** A job whose source is not there: whoever starts it asks for it. */
async function submitNext(): Promise<string | undefined> {
  count += 1;
  const source = `${count}.mp4`;
  const answer = await stand.trySubmit({ source: stand.web.url(source) }).catch(() => undefined);
  return answer?.status === 202 ? source : undefined;
}

const gatewayIsReady = async (): Promise<boolean> => {
  const response = await fetch(`${stand.gatewayUrl}/health/ready`).catch(() => undefined);
  return response?.status === 200;
};

// Broken by hand (packages/kit/src/redis/clients.ts): nothing done about the end of a connection. Reported: no job is accepted any more after the eighth kill or so.
it.each(servers)(
  `$name: jobs are accepted and done again within ${RECOVERED_WITHIN_MS / 1000} s of each of $kills failovers`,
  {
    timeout: 120 * 60_000,
  },
  async (server) => {
    const program = programOfServer(server);
    stand = await Stand.start({
      environment: LONG_LOCKS,
      redis: (folder) => {
        redis = new SentinelSet(folder, { program });
        return redis;
      },
    });
    const pids = stand.processes.map(({ pid }) => pid);
    const acceptedAfter: number[] = [];
    const doneAfter: number[] = [];
    for (let kill = 0; kill < server.kills; kill += 1) {
      let isOver = false;
      const submitting = (async () => {
        while (!isOver) {
          await submitNext();
          await delay(EVERY_MS);
        }
      })();
      await delay(EVERY_MS * 2);
      const dead = await redis.killMaster();
      const replacedAtMs = performance.now();
      isOver = true;
      await submitting;
      const source = await until('a job is accepted', submitNext, RECOVERED_WITHIN_MS * 3);
      acceptedAfter.push(performance.now() - replacedAtMs);
      await until('it is started', () => stand.web.requests.includes(source), RECOVERED_WITHIN_MS * 3);
      doneAfter.push(performance.now() - replacedAtMs);
      await until('the gateway is ready', gatewayIsReady, RECOVERED_WITHIN_MS * 3);
      await redis.bringBack(dead);
    }
    report('Masters killed one after the other', {
      server: server.name,
      kills: server.kills,
      acceptedAfterMsP50: Math.round(percentile(acceptedAfter, 0.5)),
      acceptedAfterMsMax: Math.round(percentile(acceptedAfter, 1)),
      doneAfterMsMax: Math.round(percentile(doneAfter, 1)),
    });
    expect(percentile(acceptedAfter, 1)).toBeLessThan(RECOVERED_WITHIN_MS);
    expect(percentile(doneAfter, 1)).toBeLessThan(RECOVERED_WITHIN_MS);
    expect(stand.processes.map(({ pid }) => pid)).toEqual(pids);
  },
);
