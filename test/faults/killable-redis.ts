/** A Redis with an append-only file, as the service demands it, that can be killed and started again over its folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { dieWithParent } from '../../src/launcher.ts';
import { until } from '../until.ts';

export class KillableRedis {
  readonly url: string;
  readonly #folder: string;
  readonly #socket: string;
  #server: ChildProcess | undefined;

  /** @param folder exists, and has a short path: that of a socket has 107 bytes at most */
  constructor(folder: string) {
    this.#folder = folder;
    this.#socket = join(folder, 'r.sock');
    this.url = `unix://${this.#socket}`;
  }

  get pid(): number {
    return this.#server?.pid ?? 0;
  }

  /** Resolves when it answers, with all that it had acknowledged before. */
  async start(): Promise<void> {
    const [launcher = '', ...prefix] = dieWithParent('KILL', process.env.PATH ?? '');
    const settings = ['--port', '0', '--unixsocket', this.#socket, '--dir', this.#folder, '--save', ''];
    const appendOnly = ['--appendonly', 'yes', '--appendfsync', 'everysec'];
    const quiet = ['--loglevel', 'warning', '--maxmemory-policy', 'noeviction'];
    this.#server = spawn(launcher, [...prefix, 'redis-server', ...settings, ...appendOnly, ...quiet], {
      stdio: 'ignore',
    });
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
