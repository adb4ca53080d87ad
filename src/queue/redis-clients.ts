/** ioredis' two clients, changed where a request that waits, or a worker that must not give up, needs something else. */
import { Cluster, type ClusterNode, type Command, Redis } from 'ioredis';

/** A request may meet it twice, in what it does and in what it does about that. */
export const COMMAND_TIMEOUT_MS = 900;
/** What ioredis says then. */
const LATE = 'Command timed out';
/** Between two tries of a command whose whole cluster is away. */
const CLUSTER_AWAY_RETRY_MS = 200;

type NetStream = Redis['stream'];
type SendArguments = Parameters<Cluster['sendCommand']>;
type ClusterArguments = ConstructorParameters<typeof Cluster<'legacy'>>;

/**
 * Hands all commands of one turn of the event loop to the system at once: a write of its own costs more than all else about a small command. Unlike with
 * automatic pipelining no command waits for the answers of others, so each keeps its own deadline.
 */
export class RequestRedis extends Redis {
  #corked: NetStream | undefined;

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
    lookOnceMore(command);
    return super.sendCommand(command, stream);
  }
}

const patient = new WeakSet<Command>();

/** Timers come before answers in a turn of the event loop: a process that was busy must not blame Redis. */
function lookOnceMore(command: Command): void {
  if (patient.has(command)) return;
  patient.add(command);
  const { reject } = command;
  command.reject = (error: Error) => {
    if (error.message === LATE) setImmediate(() => command.isSettled || reject(error));
    else reject(error);
  };
}

/** ioredis gives a command its deadline when a node gets it; here it counts from the start, also while there is no node to ask. */
export class RequestCluster extends Cluster {
  override sendCommand(...[command, ...rest]: SendArguments): unknown {
    lookOnceMore(command);
    command.setTimeout(COMMAND_TIMEOUT_MS);
    return super.sendCommand(command, ...rest);
  }
}

/** Until a cluster that connects is ready or has ended. No fields of it: ioredis connects in its constructor. */
const readiness = new WeakMap<Cluster, Promise<void>>();

/** ioredis gives commands up when the last node it knows is gone; a worker's wait until there is one again. */
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

  override handleError(...[error, ttl, handlers]: Parameters<Cluster['handleError']>): void {
    const isAway =
      error.message === 'Connection is closed.' && this.status !== 'ready' && this.status !== 'end';
    if (isAway && this.status !== 'disconnecting') {
      setTimeout(handlers.connectionClosed, CLUSTER_AWAY_RETRY_MS);
    } else {
      super.handleError(error, ttl, handlers);
    }
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
