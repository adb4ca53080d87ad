/** A master, two replicas and three Sentinels that watch them, each a process of its own: what a failover needs. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePorts } from 'soundpost-testing/ports';
import { type RedisProcess, spawnRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import type { StandRedis } from './killable-redis.ts';
import { SlowLink } from './slow-link.ts';

const MASTER_NAME = 'soundpost';
const SERVERS = 3;
const SENTINELS = 3;
const QUORUM = 2;
/** As short as a busy machine bears: what is tested is what happens, not how fast Sentinels are. */
const DOWN_AFTER_MS = 1000;
const FAILOVER_TIMEOUT_MS = 5000;

export interface SentinelSetOptions {
  /** Settings of each server over the common ones, such as `['--min-replicas-to-write', '1']`. */
  readonly settings?: readonly string[];
  /** The server, and what its command begins with; default that of this machine. */
  readonly program?: readonly string[] | undefined;
}

export class SentinelSet implements StandRedis {
  url = '';
  readonly #folder: string;
  readonly #settings: readonly string[];
  readonly #program: readonly string[] | undefined;
  #serverPorts: readonly number[] = [];
  #sentinelPorts: readonly number[] = [];
  readonly #servers = new Map<number, RedisProcess>();
  readonly #sentinels: RedisProcess[] = [];
  readonly #links: SlowLink[] = [];

  /** @param folder exists */
  constructor(folder: string, { settings = [], program }: SentinelSetOptions = {}) {
    this.#folder = folder;
    this.#settings = settings;
    this.#program = program;
  }

  get socketUrl(): string {
    return this.url;
  }

  /** Resolves when the Sentinels know one another and both replicas, so that a failover is possible. */
  async start(): Promise<void> {
    const ports = await freePorts(SERVERS + SENTINELS);
    this.#serverPorts = ports.slice(0, SERVERS);
    this.#sentinelPorts = ports.slice(SERVERS);
    const [master = 0, ...replicas] = this.#serverPorts;
    await this.#startServer(master);
    await Promise.all(replicas.map((port) => this.#startServer(port, master)));
    for (const port of this.#sentinelPorts) {
      const config = join(this.#folder, `sentinel-${port}.conf`);
      await writeFile(
        config,
        [
          `port ${port}`,
          'bind 127.0.0.1',
          `dir ${this.#folder}`,
          `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${master} ${QUORUM}`,
          `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
          `sentinel failover-timeout ${MASTER_NAME} ${FAILOVER_TIMEOUT_MS}`,
          '',
        ].join('\n'),
      );
      this.#sentinels.push(await spawnRedis([config, '--sentinel'], /Sentinel ID is/, this.#program));
    }
    this.url = `redis+sentinel://${this.#sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`;
    await this.ready();
  }

  /** Resolves when all servers are one set again: a master, two replicas at its side, and Sentinels that know of it. */
  async ready(): Promise<void> {
    await until(
      'the Sentinels can fail over',
      async () =>
        (
          await Promise.all(
            this.#sentinelPorts.map(async (port) => {
              const known = await this.#ask(port, (sentinel) => sentinel.call('SENTINEL', 'MASTERS')).catch(
                () => [],
              );
              const state = fieldsOf((known as string[][])[0] ?? []);
              return (
                state.flags === 'master' &&
                state['num-slaves'] === '2' &&
                state['num-other-sentinels'] === '2'
              );
            }),
          )
        ).every(Boolean),
      60_000,
    );
    await until(
      'the master has two replicas at its side',
      async () => {
        const info = await this.#ask(await this.master(), (redis) => redis.info('replication')).catch(
          () => '',
        );
        return (info.match(/state=online/g) ?? []).length === SERVERS - 1;
      },
      60_000,
    );
  }

  /** Port of whom the first Sentinel takes for the master. */
  async master(): Promise<number> {
    const [port = 0] = this.#sentinelPorts;
    const address = await this.#ask(port, (sentinel) =>
      sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME),
    );
    return Number((address as string[])[1]);
  }

  /**
   * SENTINEL FAILOVER, as before maintenance; resolves when another server is the master.
   * @param pauseMs for so long the old master takes no writes (docs/operations/redis.md "Failover")
   */
  async failover(pauseMs = 0): Promise<void> {
    const before = await this.master();
    if (pauseMs > 0) await this.#ask(before, (redis) => redis.client('PAUSE', pauseMs, 'WRITE'));
    const [port = 0] = this.#sentinelPorts;
    await this.#ask(port, (sentinel) => sentinel.call('SENTINEL', 'FAILOVER', MASTER_NAME));
    await this.#replaced(before);
  }

  /** From now on, until the master is killed, both replicas are so far behind. */
  async slowReplicas(delayMs: number): Promise<void> {
    const master = await this.master();
    // After this time Sentinels connect to the master themselves what has another address for it.
    await this.#setFailoverTimeout(10 * 60_000);
    for (const port of this.#servers.keys()) {
      if (port === master) continue;
      const link = await SlowLink.start(master, delayMs);
      this.#links.push(link);
      await this.#ask(port, (redis) => redis.replicaof('127.0.0.1', link.port));
      await until('the replica follows over the slow link', async () =>
        (await this.#ask(port, (redis) => redis.info('replication'))).includes('master_link_status:up'),
      );
    }
  }

  async #setFailoverTimeout(ms: number): Promise<void> {
    for (const port of this.#sentinelPorts) {
      await this.#ask(port, (sentinel) =>
        sentinel.call('SENTINEL', 'SET', MASTER_NAME, 'failover-timeout', ms),
      );
    }
  }

  /** SIGKILL of the master, whose last words are lost; resolves when another server is. Answers the port of the dead one. */
  async killMaster(known?: number): Promise<number> {
    const port = known ?? (await this.master());
    const links = this.#links.splice(0);
    for (const link of links) link.cut();
    await this.#servers.get(port)?.end('SIGKILL');
    this.#servers.delete(port);
    if (links.length > 0) await this.#setFailoverTimeout(FAILOVER_TIMEOUT_MS);
    await this.#replaced(port);
    return port;
  }

  /** SIGSTOP of the master, which stays connected and says nothing; resolves when another server is the master. */
  async stopMaster(): Promise<number> {
    const port = await this.master();
    process.kill(this.#servers.get(port)?.pid ?? 0, 'SIGSTOP');
    await this.#replaced(port);
    return port;
  }

  /** Starts a server again that was killed, or lets one go on that was stopped; it becomes a replica. */
  async bringBack(port: number): Promise<void> {
    const stopped = this.#servers.get(port);
    if (stopped === undefined) await this.#startServer(port);
    else process.kill(stopped.pid, 'SIGCONT');
    await this.ready();
  }

  /** Whether replicas answer. */
  async signalReplicas(signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const master = await this.master();
    for (const [port, server] of this.#servers) {
      if (port !== master) process.kill(server.pid, signal);
    }
  }

  async #replaced(before: number): Promise<void> {
    const now = () => this.master().catch(() => before);
    await until('another server is the master', async () => (await now()) !== before, 30_000);
  }

  async #startServer(port: number, master?: number): Promise<void> {
    const folder = join(this.#folder, String(port));
    await mkdir(folder, { recursive: true });
    const table = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
    const durable = [
      '--appendonly',
      'yes',
      '--repl-diskless-sync-delay',
      '0',
      '--repl-ping-replica-period',
      '1',
    ];
    const role = master === undefined ? [] : ['--replicaof', `127.0.0.1 ${master}`];
    this.#servers.set(
      port,
      await spawnRedis([...table, ...durable, ...role, ...this.#settings], undefined, this.#program),
    );
  }

  async #ask<Result>(port: number, question: (redis: Redis) => Promise<Result>): Promise<Result> {
    const redis = new Redis({ port, retryStrategy: null, commandTimeout: 2000 });
    redis.on('error', () => undefined);
    try {
      return await question(redis);
    } finally {
      redis.disconnect();
    }
  }

  connect(): Redis {
    const redis = new Redis({
      sentinels: this.#sentinelPorts.map((port) => ({ host: '127.0.0.1', port })),
      name: MASTER_NAME,
      maxRetriesPerRequest: null,
    });
    redis.on('error', () => undefined);
    return redis;
  }

  async kill(): Promise<void> {
    for (const link of this.#links.splice(0)) link.cut();
    // Sentinels first: they would fail over.
    await Promise.all(this.#sentinels.splice(0).map((sentinel) => sentinel.end('SIGKILL')));
    await Promise.all([...this.#servers.values()].map((server) => server.end('SIGKILL')));
    this.#servers.clear();
  }
}

function fieldsOf(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    flat.flatMap((name, index): [string, string][] =>
      index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [],
    ),
  );
}
