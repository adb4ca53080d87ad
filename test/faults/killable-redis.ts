/** A Redis with an append-only file, as the service demands it, that can be killed and started again over its folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { dieWithParent } from 'soundpost-base/launcher';
import { until } from 'soundpost-testing/until';

/** Its own, so that no other Redis is in the way of a fixed port. */
interface OtherHost {
  /** What a command begins with, to run there. */
  readonly prefix: readonly string[];
  readonly address: string;
}
const PORT = 6379;

/** What a stand needs of a Redis, whatever it is made of. */
export interface StandRedis {
  /** For REDIS_URL; known once it was started. */
  readonly url: string;
  /** The same for whoever looks from here. */
  readonly socketUrl: string;
  start(): Promise<void>;
  /** Ends all of it. */
  kill(): Promise<void>;
  /** A connection that waits while the server is away. The caller disconnects it. */
  connect(): Redis;
}

export class KillableRedis implements StandRedis {
  /** For the service. */
  readonly url: string;
  /** For whoever looks from here. */
  readonly socketUrl: string;
  readonly #folder: string;
  readonly #socket: string;
  readonly #host: OtherHost | undefined;
  #server: ChildProcess | undefined;

  /**
   * @param folder exists, and has a short path: that of a socket has 107 bytes at most
   * @param host where it runs, and listens on all addresses besides its socket
   */
  constructor(folder: string, host?: OtherHost) {
    this.#folder = folder;
    this.#host = host;
    this.#socket = join(folder, 'r.sock');
    this.socketUrl = `unix://${this.#socket}`;
    this.url = host === undefined ? this.socketUrl : `redis://${host.address}:${PORT}`;
  }

  get pid(): number {
    return this.#server?.pid ?? 0;
  }

  /** Resolves when it answers, with all that it had acknowledged before. */
  async start(): Promise<void> {
    const [launcher = '', ...prefix] = [
      ...(this.#host?.prefix ?? []),
      ...dieWithParent('KILL', process.env.PATH ?? ''),
    ];
    const network =
      this.#host === undefined ? ['--port', '0'] : ['--port', `${PORT}`, '--protected-mode', 'no'];
    const settings = [...network, '--unixsocket', this.#socket, '--dir', this.#folder, '--save', ''];
    const appendOnly = ['--appendonly', 'yes', '--appendfsync', 'everysec'];
    const quiet = ['--loglevel', 'warning', '--maxmemory-policy', 'noeviction'];
    const debug = ['--enable-debug-command', 'local'];
    this.#server = spawn(
      launcher,
      [...prefix, 'redis-server', ...settings, ...appendOnly, ...quiet, ...debug],
      {
        stdio: 'ignore',
      },
    );
    const redis = this.connect();
    try {
      await until('Redis answers', async () => (await redis.ping().catch(() => '')) === 'PONG');
    } finally {
      redis.disconnect();
    }
  }

  /** A connection that waits while the server is away. The caller disconnects it. */
  connect(): Redis {
    const redis = new Redis(this.#socket, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    redis.on('error', () => undefined);
    return redis;
  }

  /** SIGKILL, or SIGTERM for a tidy end. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const gone = once(server, 'exit');
    server.kill(signal);
    await gone;
  }
}
