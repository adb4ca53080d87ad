/** Redis in a container is paused, killed and restarted under load: what was accepted ends once, as the fault matrix demands. */
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from 'soundpost-testing/ports';
import { until } from 'soundpost-testing/until';
import type { StartedNetwork, StartedTestContainer } from 'testcontainers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from '../faults/invariants.ts';
import type { StandRedis } from '../faults/killable-redis.ts';
import { Load } from '../faults/load.ts';
import { Stand } from '../faults/stand.ts';
import { docker, uniqueName } from './engine.ts';
import { namedNetwork, redisContainer } from './service.ts';

/** Longer than a worker's lock lasts (2 s on a stand). */
const AWAY_MS = 5000;

/** On a port that stays the same. */
class ContainerRedis implements StandRedis {
  readonly url: string;
  readonly socketUrl: string;
  readonly #network: StartedNetwork;
  readonly #container: StartedTestContainer;

  private constructor(network: StartedNetwork, container: StartedTestContainer, port: number) {
    this.#network = network;
    this.#container = container;
    this.url = `redis://127.0.0.1:${port}`;
    this.socketUrl = this.url;
  }

  static async make(): Promise<ContainerRedis> {
    const name = uniqueName();
    const [port, network] = await Promise.all([freePort(), namedNetwork(name)]);
    const container = await redisContainer()
      .withName(`${name}-redis`)
      .withNetwork(network)
      .withExposedPorts({ container: 6379, host: port })
      .start()
      .catch(async (error: Error) => {
        await network.stop().catch(() => undefined);
        throw error;
      });
    return new ContainerRedis(network, container, port);
  }

  async #tell(...command: readonly string[]): Promise<void> {
    await docker(...command, this.#container.getId());
  }

  connect(): Redis {
    const redis = new Redis(this.url, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    redis.on('error', () => undefined);
    return redis;
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    await this.#tell('start');
    const redis = this.connect();
    await until('Redis answers', async () => (await redis.ping().catch(() => '')) === 'PONG');
    redis.disconnect();
  }

  kill = (): Promise<void> => this.#tell('kill', '--signal', 'KILL').catch(() => undefined);
  stop = (): Promise<void> => this.#tell('stop');
  pause = (): Promise<void> => this.#tell('pause');
  unpause = (): Promise<void> => this.#tell('unpause');

  async remove(): Promise<void> {
    await this.#container.stop({ timeout: 0 });
    await this.#network.stop();
  }
}

let redis: ContainerRedis;
let stand: Stand;
beforeAll(async () => {
  redis = await ContainerRedis.make();
  stand = await Stand.start({ workers: 2, redis: () => redis });
  await stand.warmUp();
});
afterAll(async () => {
  await stand?.close();
  await redis?.remove();
});

it.each([
  ['paused, so that it accepts connections and answers nothing', () => redis.pause(), () => redis.unpause()],
  ['killed', () => redis.kill(), () => redis.start()],
  ['restarted in order', () => redis.stop(), () => redis.start()],
])('%s under load: all accepted jobs end once', async (_, goAway, comeBack) => {
  const before = stand.accepted.length;
  const encoding = await stand.submit({ source: 'long.wav', output: { format: 'flac' }, webhook: true });
  await until('ffmpeg is at it', async () => (stand.observer.of(encoding).last?.progress ?? 0) > 30);
  const load = new Load(stand);
  await until('some of the load is accepted', () => stand.accepted.length > before + 3);
  await goAway();
  // Whoever asks meanwhile is told so.
  const { status, body } = await stand.client.call('GET', `/v1/status/${encoding}`);
  expect([status, body.error.code]).toEqual([503, 'SERVICE_UNAVAILABLE']);
  await delay(AWAY_MS);
  await comeBack();
  await until('it is accepted again', () => stand.accepted.length > before + 10, 60_000);
  const accepted = await load.stop();
  // There were some whose first try met the outage.
  expect(accepted.some(({ setbacks }) => setbacks.length > 0)).toBe(true);
  expect(await violations(stand, { restMs: 120_000 })).toEqual([]);
  const states = stand.accepted.map(({ jobId }) => stand.observer.of(jobId).last?.status);
  expect(new Set(states)).toEqual(new Set(['completed']));
});
