/** The image's processes as containers of testcontainers, with the restrictions of docker-compose.yml, on a network of their own. */
import { randomBytes } from 'node:crypto';
import { Client } from 'soundpost-testing/client';
import { freePort } from 'soundpost-testing/ports';
import {
  GenericContainer,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { docker, IMAGE, inspect, uniqueName } from './engine.ts';

/** The image with a root that nobody can write to, for which testcontainers has no method, and its own health check, asked more often. */
class SoundpostContainer extends GenericContainer {
  constructor(image: string, healthTest: ['CMD', ...string[]]) {
    super(image);
    this.hostConfig.ReadonlyRootfs = true;
    // A busy machine takes longer for a start than for two of these checks.
    const startPeriod = 120_000;
    this.withHealthCheck({ test: healthTest, interval: 1000, timeout: 5000, retries: 2, startPeriod });
  }
}

/** The Redis of docker-compose.yml, as far as it matters here; resolves when it takes connections. */
export function redisContainer(): GenericContainer {
  const settings = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
  return new GenericContainer('redis:7-bookworm')
    .withCommand(['redis-server', ...settings, '--maxmemory-policy', 'noeviction', '--protected-mode', 'no'])
    .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/));
}

/** testcontainers would call it by a UUID, and nobody would know whose it is. */
export const namedNetwork = (name: string): Promise<StartedNetwork> =>
  new Network({ nextUuid: () => name }).start();

type Environment = Readonly<Record<string, string>>;

interface RunOptions {
  /** Default: the command. */
  readonly name?: string;
  readonly environment?: Environment;
  /** What a test needs besides. */
  readonly change?: (container: GenericContainer) => GenericContainer;
}

export class ServiceContainers {
  readonly key = `sp_${randomBytes(4).toString('hex')}_${randomBytes(16).toString('hex')}`;
  readonly #network: StartedNetwork;
  readonly #name: string;
  readonly #environment: Environment;
  readonly #started: StartedTestContainer[] = [];

  private constructor(name: string, network: StartedNetwork, environment: Environment) {
    this.#name = name;
    this.#network = network;
    this.#environment = environment;
  }

  /** With a Redis, and nothing of the service yet. */
  static async make(environment: Environment = {}): Promise<ServiceContainers> {
    const name = uniqueName();
    const service = new ServiceContainers(name, await namedNetwork(name), environment);
    try {
      await service.#start(redisContainer(), 'redis');
    } catch (error) {
      await service.remove().catch(() => undefined);
      throw error;
    }
    return service;
  }

  async #start(container: GenericContainer, name: string): Promise<StartedTestContainer> {
    let log = '';
    container.withLogConsumer((stream) => {
      stream.on('data', (line) => {
        log += line;
      });
    });
    try {
      const started = await container.withName(`${this.#name}-${name}`).withNetwork(this.#network).start();
      this.#started.push(started);
      return started;
    } catch (error) {
      // testcontainers removes the container with its log.
      throw new Error(`${name} does not start. It wrote:\n${log}`, { cause: error });
    }
  }

  /** The name by which containers of this network find one of them. */
  hostOf(name: string): string {
    return `${this.#name}-${name}`;
  }

  /** A program of the test's own beside the service, by the Node of its image. */
  async program(name: string, code: string, says: RegExp): Promise<StartedTestContainer> {
    const container = new GenericContainer(IMAGE)
      .withEntrypoint(['node', '--input-type=module', '--eval', code])
      .withCommand([])
      .withWaitStrategy(Wait.forLogMessage(says));
    return this.#start(container, name);
  }

  /**
   * Resolves when it is healthy.
   * @param command api, worker or gateway
   */
  async run(command: string, options: RunOptions = {}): Promise<StartedTestContainer> {
    const { name = command, environment = {}, change = (container) => container } = options;
    const container = new SoundpostContainer(IMAGE, (await inspect(IMAGE)).Config.Healthcheck.Test)
      .withCommand([command])
      .withEnvironment({
        REDIS_URL: `redis://${this.hostOf('redis')}:6379`,
        SECRET_KEY: 'a secret that all containers share, of 32 bytes or more',
        BOOTSTRAP_API_KEY: this.key,
        GATEWAY_URL: `http://${this.hostOf('gateway')}:8081`,
        GATEWAY_EVENTS_URL: `http://${this.hostOf('api')}:8080/hooks/gateway`,
        // Short, and not so short that it runs out while a busy machine lets a worker wait.
        JOB_LOCK_SECONDS: '5',
        ...this.#environment,
        ...environment,
      })
      .withTmpFs({ '/tmp': 'size=64m' })
      .withBindMounts([{ source: `${this.#name}-data`, target: '/data', mode: 'rw' }])
      .withDroppedCapabilities('ALL')
      .withSecurityOpt('no-new-privileges:true')
      .withWaitStrategy(Wait.forHealthCheck());
    return this.#start(change(container), name);
  }

  /** The API, published on a port of this machine, and a client for it. */
  async api(environment: Environment = {}): Promise<Client> {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await this.run('api', {
      environment: { PUBLIC_URL: url, ...environment },
      change: (container) => container.withExposedPorts({ container: 8080, host: port }),
    });
    return new Client(url, this.key);
  }

  async remove(): Promise<void> {
    const containers = await Promise.allSettled(
      this.#started.map((container) => container.stop({ timeout: 0 })),
    );
    const rest = await Promise.allSettled([
      this.#network.stop(),
      docker('volume', 'rm', '--force', `${this.#name}-data`),
    ]);
    const failed = [...containers, ...rest].find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
  }
}
