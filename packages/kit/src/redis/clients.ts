/** ioredis' two clients, changed where a request that waits, or a worker that must not give up, needs something else. */
import { Cluster, type ClusterNode, type Command, Redis, type RedisOptions } from 'ioredis';
import { deadline } from 'soundpost-base/deadline';

/** The default of REDIS_DEADLINE_SECONDS. A request may meet it twice, in what it does and in what it does about that. */
export const REQUEST_DEADLINE_MS = 900;

type NetStream = Redis['stream'];
type SendArguments = Parameters<Cluster['sendCommand']>;
type ClusterArguments = ConstructorParameters<typeof Cluster<'legacy'>>;

const CONNECT_AGAIN_MS = 100;
type LegacyOptions = RedisOptions & { replyMapping?: 'legacy' };

/**
 * Is over only when whoever has it ends it. ioredis also ends a connection to a master when Sentinels tell of another one while it is being made, and never tries
 * again: its process would answer 503 for good.
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
    // ioredis connects in its constructor.
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
 * Hands all commands of one turn of the event loop to the system at once: a write of its own costs more than all else about a small command. Unlike with
 * automatic pipelining no command waits for the answers of others, so each keeps its own deadline.
 */
export class RequestRedis extends LastingRedis {
  declare readonly options: LegacyOptions & { readonly deadlineMs?: number };
  #corked: NetStream | undefined;

  /** @param options `deadlineMs`: how long a command may take. Copies have it too. */
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
    giveDeadline(command, this.options.deadlineMs);
    return super.sendCommand(command, stream);
  }
}

const limited = new WeakSet<Command>();

/** The deadline counts from the first sending, also while there is nobody to send to. ioredis' own would blame Redis where the process was busy. */
function giveDeadline(command: Command, ms = REQUEST_DEADLINE_MS): void {
  if (limited.has(command)) return;
  limited.add(command);
  const limit = deadline(ms, { reason: () => new Error('Command timed out') });
  limit.signal.addEventListener('abort', () => {
    if (!command.isSettled) command.reject(limit.signal.reason);
  });
  const end = (): void => limit[Symbol.dispose]();
  command.promise.then(end, end);
}

/** Commands to a cluster's nodes have no deadline of their own: what a cluster does about a failure is part of the command. */
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

/** Until a cluster that connects is ready or has ended. No fields of it: ioredis connects in its constructor. */
const readiness = new WeakMap<Cluster, Promise<void>>();

/** What a worker's connection to a cluster has to do where BullMQ waits for it. */
export class WorkerCluster extends Cluster {
  readonly #startupNodes: ClusterNode[];

  constructor(...[startupNodes, options]: ClusterArguments) {
    super(startupNodes, options);
    this.#startupNodes = startupNodes;
  }

  /** What BullMQ's workers fetch and block with are copies; ioredis would make them of the plain class. */
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
   * In the middle of a failover the nodes say that their cluster is down: ioredis connects again by itself, but what it answered the first time
   * never settles then, and BullMQ, which waits for it, would take no more jobs.
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
  // Nobody may be waiting.
  settled.catch(() => undefined);
  readiness.set(cluster, settled);
  return settled;
}
