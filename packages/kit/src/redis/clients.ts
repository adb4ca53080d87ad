/** ioredis' clients, changed for requests that wait and workers that must not give up. */
import { Cluster, type ClusterNode, type Command, Redis, type RedisOptions } from 'ioredis';
import { giveDeadline } from './request-budget.ts';

/** Default of REDIS_DEADLINE_SECONDS: what the commands of a request may take together. */
export const REQUEST_DEADLINE_MS = 900;

type NetStream = Redis['stream'];
type SendArguments = Parameters<Cluster['sendCommand']>;
type ClusterArguments = ConstructorParameters<typeof Cluster<'legacy'>>;

/**
 * ioredis (6.0.0) hears one `error` of a socket. A server that refuses our certificate causes two,
 * and the second would end the process. Covers nodes of a cluster and clients of Sentinels too.
 */
const streams = new WeakMap<object, NetStream>();
Object.defineProperty(Redis.prototype, 'stream', {
  configurable: true,
  get(this: object) {
    return streams.get(this);
  },
  set(this: object, stream: NetStream) {
    stream.on('error', () => undefined);
    streams.set(this, stream);
  },
});

const CONNECT_AGAIN_MS = 100;
type LegacyOptions = RedisOptions & { replyMapping?: 'legacy' };

/**
 * Ends only when its owner ends it. ioredis also ends a connection for good if Sentinels report a
 * new master while it is being made; the process would then answer 503 forever.
 */
export class LastingRedis extends Redis {
  #isLeft = false;

  constructor(options: LegacyOptions) {
    super(options);
    this.on('end', () => {
      if (this.#isLeft) return;
      setTimeout(() => {
        if (!this.#isLeft && this.status === 'end') this.connect().catch(() => undefined);
      }, CONNECT_AGAIN_MS);
    });
  }

  override connect(...args: Parameters<Redis['connect']>): Promise<void> {
    // ioredis calls this in its constructor.
    if (#isLeft in this) this.#isLeft = false;
    return super.connect(...args);
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) this.#isLeft = true;
    super.disconnect(reconnect);
  }

  override quit(...args: Parameters<Redis['quit']>): Promise<'OK'> {
    this.#isLeft = true;
    return super.quit(...args) as Promise<'OK'>;
  }

  /** BullMQ's workers fetch and block with copies. */
  override duplicate(override: Partial<RedisOptions> = {}): ReturnType<Redis['duplicate']> {
    const Own = this.constructor as typeof LastingRedis;
    return new Own({ ...this.options, ...override, replyMapping: 'legacy' });
  }
}

/**
 * Writes all commands of one event loop turn at once: a write costs more than the rest of a small
 * command. Unlike automatic pipelining, commands wait for no others, so each keeps its deadline.
 */
export class RequestRedis extends LastingRedis {
  declare readonly options: LegacyOptions & { readonly deadlineMs?: number };
  #corked: NetStream | undefined;

  /** @param options `deadlineMs`: how long a command may take. Copies inherit it. */
  constructor(options: LegacyOptions & { readonly deadlineMs: number }) {
    super(options);
  }

  override sendCommand(command: Command, stream?: Parameters<Redis['sendCommand']>[1]): unknown {
    if (this.#corked === undefined && this.status === 'ready') {
      const corked = this.stream;
      this.#corked = corked;
      corked.cork();
      setImmediate(() => {
        this.#corked = undefined;
        corked.uncork();
      });
    }
    giveDeadline(command, this.options.deadlineMs ?? REQUEST_DEADLINE_MS);
    return super.sendCommand(command, stream);
  }
}

/** The deadline covers the whole command, including the cluster's retries on its nodes. */
export class RequestCluster extends Cluster {
  readonly #deadlineMs: number;

  constructor(nodes: ClusterNode[], options: ClusterArguments[1], deadlineMs: number) {
    super(nodes, options);
    this.#deadlineMs = deadlineMs;
  }

  override sendCommand(...[command, ...rest]: SendArguments): unknown {
    giveDeadline(command, this.#deadlineMs);
    return super.sendCommand(command, ...rest);
  }
}

/** Until a cluster is ready or ends. Not a field: ioredis connects in its constructor. */
const readiness = new WeakMap<Cluster, Promise<void>>();

/** A worker's connection to a cluster, adapted to BullMQ. */
export class WorkerCluster extends Cluster {
  readonly #startupNodes: ClusterNode[];

  constructor(...[startupNodes, options]: ClusterArguments) {
    super(startupNodes, options);
    this.#startupNodes = startupNodes;
  }

  /** BullMQ's workers fetch and block with copies; ioredis would make them of the plain class. */
  override duplicate(
    ...[startupNodes = [], options]: Parameters<Cluster['duplicate']>
  ): ReturnType<Cluster['duplicate']> {
    const { redisOptions } = this.options;
    return new WorkerCluster(startupNodes.length > 0 ? startupNodes : this.#startupNodes, {
      ...this.options,
      ...options,
      redisOptions: { ...redisOptions, ...options?.redisOptions, replyMapping: 'legacy' },
    });
  }

  /**
   * In a failover the nodes report that their cluster is down. ioredis then reconnects, but its
   * first promise never settles, and BullMQ would wait for it forever.
   */
  override connect(): Promise<void> {
    const attempt = super.connect();
    return Promise.race([attempt, readiness.get(this) ?? untilReady(this)]);
  }
}

function untilReady(cluster: Cluster): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onReady = (): void => resolve();
  const onEnd = (): void => reject(new Error('Connection is closed.'));
  cluster.once('ready', onReady);
  cluster.once('end', onEnd);
  const settled = promise.finally(() => {
    readiness.delete(cluster);
    cluster.off('ready', onReady);
    cluster.off('end', onEnd);
  });
  // It may have no waiter.
  settled.catch(() => undefined);
  readiness.set(cluster, settled);
  return settled;
}
