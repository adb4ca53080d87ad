/** Connections to Redis, one kind for each way of failing (architecture.md "Traps"). */

import { Cluster, type ClusterOptions, type RedisOptions, type Redis as SingleRedis } from 'ioredis';
import { untilAborted, within } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import { type AwayReason, awayReason, refusesWrites, sayAway } from '../observe/away.ts';
import type { Probe } from '../observe/probes.ts';
import { LastingRedis, REQUEST_DEADLINE_MS, RequestCluster, RequestRedis, WorkerCluster } from './clients.ts';
import { KEY_PREFIX, ownKey } from './keys.ts';
import { parseRedisUrl } from './target.ts';

type RedisTarget = ReturnType<typeof parseRedisUrl>;

/** A single Redis, the master that Sentinels name, or a cluster. */
export type Redis = SingleRedis | Cluster;

/**
 * - `request`: for a waiting caller. While Redis is unavailable, commands fail at once; if it
 *   hangs, in time for an answer within 2 s.
 * - `worker`: waits for Redis as long as it takes, as BullMQ's workers require.
 */
type RedisRole = 'request' | 'worker';

/** PEM texts for rediss://. Default: Node's trusted authorities, and no client certificate. */
interface RedisTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface RedisAddress {
  /** See {@link parseRedisUrl}. */
  readonly url: string;
  readonly tls?: RedisTls | undefined;
  /** How long a command of the role `request` may take; default {@link REQUEST_DEADLINE_MS}. */
  readonly deadlineMs?: number | undefined;
}

interface RedisConnectionOptions extends RedisAddress {
  readonly role: RedisRole;
  readonly logger: Logger;
}

const CONNECT_TIMEOUT_MS = 5000;
/** For one of several nodes: the next one may answer. */
const CONNECT_TO_ONE_OF_MANY_MS = 2000;
const LONGEST_RECONNECT_DELAY_MS = 2000;
/** While another master is elected, it should be found soon. */
const LONGEST_SEARCH_DELAY_MS = 500;
/**
 * A connection with an answer this late is closed, since its server may have vanished. Longer than
 * a stall of a healthy server, and than the longest blocking read (10 s, BullMQ's).
 */
const SILENCE_MS = { request: 3000, worker: 15_000 };
/** For connections that only listen; Node then probes each second, ten times. */
const KEEP_ALIVE_MS = 10_000;
/** Redirections of a command in a cluster; unlimited for a worker. */
const REDIRECTIONS = { request: 16, worker: Number.MAX_SAFE_INTEGER };
const NEXT_REDIRECTION_MS = 20;
const SLOTS_TIMEOUT_MS = 2000;

/** A server that is no master, or not yet: reconnecting may find the master. */
const NO_MASTER: readonly (AwayReason | undefined)[] = [
  'redis_read_only',
  'redis_loading',
  'redis_no_master',
];
const REJECT_AND_RECONNECT = 1;
const RECONNECT_AND_RESEND = 2;

/** @throws RedisUrlError */
export function connectRedis({ url, role, logger, ...options }: RedisConnectionOptions): Redis {
  const redis = connect(parseRedisUrl(url), role, options);
  // Without a listener ioredis prints to the console and an EventEmitter would throw.
  let reported = '';
  const report = (error: Error): void => {
    if (reported !== error.message) {
      reported = error.message;
      logger.warn({ role, error: error.message }, 'redis connection failed');
    }
  };
  redis.on('error', report);
  redis.on('node error', report);
  redis.on('sentinelError', report);
  redis.on('ready', () => {
    reported = '';
  });
  return redis;
}

/** Replies in ioredis' legacy form, which its types require. */
interface Legacy {
  replyMapping?: 'legacy';
}
type NodeOptions = NonNullable<ClusterOptions['redisOptions']> & Legacy;

function connect(
  target: RedisTarget,
  role: RedisRole,
  { tls, deadlineMs = REQUEST_DEADLINE_MS }: Omit<RedisAddress, 'url'>,
): Redis {
  const options = optionsOf(target, tls, role, deadlineMs);
  if (target.kind === 'cluster') {
    const clusterOptions: ClusterOptions & { redisOptions: NodeOptions } = {
      clusterRetryStrategy: retryWithin(LONGEST_SEARCH_DELAY_MS),
      // Keep names, so that certificates can be compared with them.
      dnsLookup: (address, callback) => callback(null, address),
      maxRedirections: REDIRECTIONS[role],
      retryDelayOnMoved: NEXT_REDIRECTION_MS,
      slotsRefreshTimeout: SLOTS_TIMEOUT_MS,
      redisOptions: options,
    };
    const nodes = target.nodes.map((node) => ({ ...node }));
    return role === 'request'
      ? new RequestCluster(nodes, clusterOptions, deadlineMs)
      : new WorkerCluster(nodes, clusterOptions);
  }
  const singleOptions: RedisOptions & Legacy = {
    ...options,
    ...placeOf(target, options.tls),
    retryStrategy: retryWithin(
      target.kind === 'sentinel' ? LONGEST_SEARCH_DELAY_MS : LONGEST_RECONNECT_DELAY_MS,
    ),
    reconnectOnError: (error) => {
      if (!NO_MASTER.includes(awayReason(error))) return false;
      // Nothing was done. Requests fail at once; a worker's command goes to the next master.
      return role === 'request' ? REJECT_AND_RECONNECT : RECONNECT_AND_RESEND;
    },
  };
  return role === 'request'
    ? new RequestRedis({ ...singleOptions, deadlineMs })
    : new LastingRedis(singleOptions);
}

/** Options of every connection, including those to nodes of a cluster. */
function optionsOf(
  target: RedisTarget,
  tls: RedisTls | undefined,
  role: RedisRole,
  deadlineMs: number,
): NodeOptions {
  const login = target.kind === 'socket' ? {} : { username: target.username, password: target.password };
  const isOneOfMany = target.kind === 'sentinel' || target.kind === 'cluster';
  return {
    ...login,
    // No enableAutoPipelining: commands would wait for each other (RequestRedis instead).
    maxRetriesPerRequest: role === 'request' ? 1 : null,
    connectTimeout: isOneOfMany ? CONNECT_TO_ONE_OF_MANY_MS : CONNECT_TIMEOUT_MS,
    socketTimeout: Math.max(SILENCE_MS[role], role === 'request' ? 2 * deadlineMs : 0),
    keepAlive: KEEP_ALIVE_MS,
    ...(target.kind !== 'socket' && target.tls ? { tls: { ...tls } } : {}),
  };
}

function placeOf(
  target: Exclude<RedisTarget, { kind: 'cluster' }>,
  tls: RedisOptions['tls'],
): RedisOptions & Legacy {
  switch (target.kind) {
    case 'socket':
      return { path: target.path };
    case 'single':
      return { ...target.node, db: target.db };
    case 'sentinel':
      return {
        sentinels: target.sentinels.map((node) => ({ ...node })),
        name: target.master,
        db: target.db,
        sentinelUsername: target.sentinelLogin.username,
        sentinelPassword: target.sentinelLogin.password,
        sentinelCommandTimeout: CONNECT_TO_ONE_OF_MANY_MS,
        sentinelReconnectStrategy: retryWithin(LONGEST_RECONNECT_DELAY_MS),
        // A master that was cut off says nothing; the Sentinels report the new one.
        failoverDetector: true,
        ...(tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
      };
  }
}

function retryWithin(longestMs: number): (attempt: number) => number {
  return (attempt) => Math.min(50 * 2 ** Math.min(attempt, 8), longestMs);
}

/** Another connection of the same kind, of the role `worker`. */
export function duplicateRedis(redis: Redis): Redis {
  return redis instanceof Cluster ? redis.duplicate() : redis.duplicate();
}

/** Asks the node with the keys; another node's answer would mean nothing. */
export async function pingRedis(redis: Redis): Promise<void> {
  await redis.exists(KEY_PREFIX);
}

/** `refuses-writes`: it answers, but is full, cannot persist, lacks replicas, or is no master. */
export const redisStates = ['up', 'refuses-writes', 'down'] as const;

interface RedisHealth {
  readonly state: (typeof redisStates)[number];
  /** Unless it is up. */
  readonly reason?: AwayReason;
}

const WRITTEN_FOR_MS = 60_000;

/** Whether this Redis can be used: reads may work while every write is refused. */
export async function healthOfRedis(redis: Redis): Promise<RedisHealth> {
  try {
    await redis.set(ownKey('written'), '', 'PX', WRITTEN_FOR_MS);
    return { state: 'up' };
  } catch (error) {
    const reason = awayReason(error) ?? 'redis_unreachable';
    return { state: refusesWrites(reason) ? 'refuses-writes' : 'down', reason };
  }
}

/** Whether Redis takes writes. Of one that does not answer nothing is known. */
export function redisProbe(redis: Redis): Probe<'redis'> {
  let reason: AwayReason | undefined;
  return {
    async ask() {
      const health = await healthOfRedis(redis);
      reason = health.reason;
      if (health.state === 'down') throw new Error(reason && sayAway(reason));
      return health.state;
    },
    details: () => ({ reason, remedy: reason && sayAway(reason) }),
  };
}

const QUIT_TIMEOUT_MS = 2000;

/** Closes a connection, without waiting for an unavailable or hanging Redis. */
export async function closeRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') {
    await within(QUIT_TIMEOUT_MS, () => redis.quit()).catch(() => undefined);
  }
  redis.disconnect();
}

// Detects that this process alone has lost Redis, so that its restart helps. If Redis is
// unavailable for all, no restart does (decisions E, "Health").

/** @param redis of the role `request`: its commands end in time */
export function linkProbe(redis: Redis): Probe<'link'> {
  return {
    async ask(closing) {
      const isLost =
        !(await answers(redis)) && (await answersAnew(redis, closing)) && !(await answers(redis));
      return isLost ? 'cut-off' : 'up';
    },
  };
}

async function answers(redis: Redis): Promise<boolean> {
  try {
    await pingRedis(redis);
    return true;
  } catch {
    return false;
  }
}

async function answersAnew(redis: Redis, closing: AbortSignal): Promise<boolean> {
  if (closing.aborted) return false;
  const fresh = duplicateRedis(redis);
  // Without a listener ioredis prints to the console.
  fresh.on('error', () => undefined);
  try {
    return await untilAborted(answers(fresh), closing).catch(() => false);
  } finally {
    fresh.disconnect();
  }
}
