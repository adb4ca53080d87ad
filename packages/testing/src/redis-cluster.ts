/** Three masters that are a Redis Cluster, in a folder of their own. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { freePorts } from './ports.ts';
import { type RedisProcess, spawnRedis } from './redis-server.ts';
import { until } from './until.ts';

const run = promisify(execFile);
const NODES = 3;

interface Node {
  readonly address: string;
  process: RedisProcess;
  readonly start: () => Promise<RedisProcess>;
}

export class TestCluster {
  readonly #folder: string;
  readonly #nodes: Node[];

  private constructor(folder: string, nodes: Node[]) {
    this.#folder = folder;
    this.#nodes = nodes;
  }

  static async start(): Promise<TestCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-cluster-'));
    // Asked for together, so that no two of them are the same.
    const ports = await freePorts(2 * NODES);
    const pairs = Array.from({ length: NODES }, (_, nth) => ports.slice(2 * nth, 2 * nth + 2));
    const nodes = await Promise.all(pairs.map((pair) => startNode(folder, pair)));
    const cluster = new TestCluster(folder, nodes);
    await run('redis-cli', ['--cluster', 'create', ...cluster.#addresses, '--cluster-yes']);
    await cluster.#agrees(NODES);
    return cluster;
  }

  /** `redis+cluster://…`, all nodes. */
  get url(): string {
    return `redis+cluster://${this.#addresses.join(',')}`;
  }

  get #addresses(): string[] {
    return this.#nodes.map(({ address }) => address);
  }

  /** All keys by node. */
  async keys(): Promise<string[][]> {
    return Promise.all(this.#nodes.map(({ address }) => ask(address, (node) => node.keys('*'))));
  }

  /**
   * Gives the node that has the keys a replica, kills it, and resolves when the replica has taken
   * its place.
   */
  async replaceOwner(): Promise<void> {
    const [owner, replica] = await this.#addReplica();
    await owner.process.end('SIGKILL');
    this.#nodes.splice(this.#nodes.indexOf(owner), 1);
    await until(
      'the replica has the keys',
      async () =>
        (await ask(replica.address, (node) => node.cluster('INFO'))).includes('cluster_state:ok') &&
        (await ask(replica.address, (node) => node.role()))[0] === 'master',
      30_000,
    );
  }

  /** Kills every node, and resolves with what starts them again. */
  async crash(): Promise<() => Promise<void>> {
    await Promise.all(this.#nodes.map(({ process }) => process.end('SIGKILL')));
    return async () => {
      for (const node of this.#nodes) node.process = await node.start();
      await this.#agrees(this.#nodes.length);
    };
  }

  async #addReplica(): Promise<[Node, Node]> {
    const owner = this.#nodes[(await this.keys()).findIndex((keys) => keys.length > 0)];
    if (owner === undefined) throw new Error('no node has keys yet');
    const id = await ask(owner.address, (node) => node.cluster('MYID'));
    const replica = await startNode(this.#folder, await freePorts(2));
    this.#nodes.push(replica);
    const asReplica = ['--cluster-slave', '--cluster-master-id', String(id)];
    await run('redis-cli', ['--cluster', 'add-node', replica.address, owner.address, ...asReplica]);
    await until('the replica is at its master’s side', async () =>
      (await ask(owner.address, (node) => node.info('replication'))).includes('state=online'),
    );
    await this.#agrees(NODES + 1);
    return [owner, replica];
  }

  async #agrees(nodes: number): Promise<void> {
    await until('every node knows every other, and that the cluster works', async () => {
      const infos = await Promise.all(
        this.#addresses.map((address) => ask(address, (node) => node.cluster('INFO'))),
      );
      return infos.every(
        (info) => info.includes('cluster_state:ok') && info.includes(`known_nodes:${nodes}`),
      );
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#nodes.map(({ process }) => process.end('SIGKILL')));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function startNode(parent: string, [port = 0, busPort = 0]: readonly number[]): Promise<Node> {
  const folder = join(parent, String(port));
  await mkdir(folder);
  const table: Record<string, string> = {
    port: String(port),
    bind: '127.0.0.1',
    dir: folder,
    save: '',
    appendonly: 'yes',
    'cluster-enabled': 'yes',
    'cluster-port': String(busPort),
    'cluster-config-file': 'nodes.conf',
    'cluster-node-timeout': '2000',
    'repl-diskless-sync-delay': '0',
  };
  const start = () => spawnRedis(Object.entries(table).flatMap(([name, value]) => [`--${name}`, value]));
  return { address: `127.0.0.1:${port}`, process: await start(), start };
}

async function ask<Result>(address: string, question: (node: Redis) => Promise<Result>): Promise<Result> {
  const node = new Redis(`redis://${address}`);
  try {
    return await question(node);
  } finally {
    node.disconnect();
  }
}
