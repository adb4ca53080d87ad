/** Checks at the start of a process whether Redis can be trusted with jobs. */
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster, type Redis as SingleRedis } from 'ioredis';
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from './connection.ts';

interface FitnessOptions {
  /** A connection of the role `request`. */
  readonly redis: Redis;
  /** REDIS_WAIT_REPLICAS. */
  readonly waitReplicas: number;
  /** How long to wait for a master, ms: a failover may be running, or Redis just starting. */
  readonly patienceMs: number;
  readonly logger: Logger;
}

type Unfitness =
  | 'permission'
  | 'login'
  | 'certificate'
  | 'kind'
  | 'version'
  | 'eviction'
  | 'away'
  | 'replica';

/** The service cannot work with this Redis. The message says why, and what to do. */
export class RedisUnfit extends Error {
  override readonly name = 'RedisUnfit';
  readonly reason: Unfitness;

  constructor(reason: Unfitness, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** It added XAUTOCLAIM and ZADD GT, and BullMQ recommends it. Valkey began at 7.2. */
export const OLDEST_REDIS = '6.2';
const LOOK_EVERY_MS = 250;
const AWAY = 'Redis cannot be reached';
const LAG_WARNING_SECONDS = 10;

/**
 * Warns about risks of losing jobs.
 * @throws RedisUnfit if Redis is unsuitable, or if no master answers in time
 */
export async function checkRedis(options: FitnessOptions): Promise<void> {
  const { redis, patienceMs, logger } = options;
  const endMs = Date.now() + patienceMs;
  let heard: Error | undefined;
  const listen = (error: Error): void => {
    // A cluster's general error hides what a node said.
    heard = 'lastNodeError' in error && error.lastNodeError instanceof Error ? error.lastNodeError : error;
  };
  for (const event of ['error', 'node error', 'sentinelError']) redis.on(event, listen);
  try {
    for (let said = ''; ; ) {
      const obstacle = await look(options, () => heard);
      if (obstacle === undefined) {
        return;
      }
      if (Date.now() > endMs) {
        throw new RedisUnfit(obstacle.startsWith(AWAY) ? 'away' : 'replica', obstacle);
      }
      if (said !== obstacle) {
        logger.warn(`${obstacle}; waiting for it`);
        said = obstacle;
      }
      await delay(LOOK_EVERY_MS);
    }
  } finally {
    for (const event of ['error', 'node error', 'sentinelError']) redis.off(event, listen);
  }
}

/** A sentence about an obstacle that may be temporary; undefined: none. */
async function look(options: FitnessOptions, heard: () => Error | undefined): Promise<string | undefined> {
  let servers: { redis: SingleRedis; info: Info }[];
  try {
    servers = await Promise.all(
      (await serversOf(options.redis)).map(async (redis) => ({ redis, info: parseInfo(await redis.info()) })),
    );
  } catch (error) {
    const cause = heard() ?? error;
    // OpenSSL's messages end with a newline.
    const message = (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, ' ').trim();
    if (/NOPERM/.test(message)) {
      throw new RedisUnfit(
        'permission',
        `the user of REDIS_URL lacks a permission (${message}); docs/operations/redis.md "A dedicated user" has the ACL rule`,
      );
    }
    if (/WRONGPASS|NOAUTH|invalid password/i.test(message)) {
      throw new RedisUnfit('login', `Redis does not accept the user and password of REDIS_URL (${message})`);
    }
    if (/certificate|self[- ]signed|unable to verify/i.test(message)) {
      throw new RedisUnfit(
        'certificate',
        `the certificate of Redis, or ours, is not accepted (${message}): see REDIS_CA_FILE, REDIS_CERT_FILE and REDIS_KEY_FILE`,
      );
    }
    if (/cluster support disabled/.test(message)) {
      throw new RedisUnfit(
        'kind',
        'the Redis of REDIS_URL is not a cluster: write redis:// instead of redis+cluster://',
      );
    }
    return `${AWAY} (${message})${certificateHint(options.redis, message)}`;
  }
  for (const { info } of servers) {
    demandFit(info, options.redis instanceof Cluster);
    if (info.get('role') === 'slave') {
      return 'the Redis of REDIS_URL is a replica, and takes no writes; name the master, or let Sentinel find it (redis+sentinel://)';
    }
  }
  for (const { redis, info } of servers) {
    await warnOfLosses(redis, info, options);
  }
  return undefined;
}

/** With TLS 1.3 a write may meet the closed connection before the alert about it is read. */
function certificateHint(redis: Redis, message: string): string {
  const options = redis instanceof Cluster ? redis.options.redisOptions : redis.options;
  if (options?.tls === undefined || !message.includes('ECONNRESET')) return '';
  return '; if it asks for a certificate, set REDIS_CERT_FILE';
}

async function serversOf(redis: Redis): Promise<SingleRedis[]> {
  if (!(redis instanceof Cluster)) {
    return [redis];
  }
  // Waits until the cluster knows its nodes.
  await redis.cluster('INFO');
  return redis.nodes('master');
}

type Info = ReadonlyMap<string, string>;

function parseInfo(text: string): Info {
  return new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const colon = line.indexOf(':');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
    }),
  );
}

function demandFit(info: Info, isCluster: boolean): void {
  if (info.get('redis_mode') === 'sentinel') {
    throw new RedisUnfit(
      'kind',
      'REDIS_URL names a Sentinel: write redis+sentinel://host:port/<name of the master>',
    );
  }
  if (!isCluster && info.get('cluster_enabled') === '1') {
    throw new RedisUnfit(
      'kind',
      'REDIS_URL names a node of a Redis Cluster: write redis+cluster:// instead of redis://',
    );
  }
  const version = info.get('redis_version') ?? '';
  if (isOlder(version, OLDEST_REDIS)) {
    throw new RedisUnfit(
      'version',
      `Redis ${version} is too old: the service needs ${OLDEST_REDIS} or newer, or Valkey`,
    );
  }
  const policy = info.get('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction') {
    throw new RedisUnfit(
      'eviction',
      `Redis may throw jobs away when its memory is full (maxmemory-policy ${policy}): set maxmemory-policy noeviction, in its configuration or by CONFIG SET`,
    );
  }
}

function isOlder(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = than.split('.').map(Number);
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}

async function warnOfLosses(
  redis: SingleRedis,
  info: Info,
  { waitReplicas, logger }: FitnessOptions,
): Promise<void> {
  if (info.get('aof_enabled') === '0') {
    logger.warn(await persistenceWarning(redis));
  }
  const replicas = Number(info.get('connected_slaves') ?? 0);
  if (replicas < waitReplicas) {
    logger.warn(
      { replicas, waitReplicas },
      'Redis has fewer replicas than REDIS_WAIT_REPLICAS: until there are as many, submissions are answered 503',
    );
  }
  for (const [name, replica] of info) {
    const lag = Number(/^slave\d+$/.test(name) ? /lag=(\d+)/.exec(replica)?.[1] : 0);
    if (lag >= LAG_WARNING_SECONDS) {
      logger.warn(
        { replica, lag },
        'a replica of Redis is behind; what it has not got yet is lost in a failover to it',
      );
    }
  }
}

async function persistenceWarning(redis: SingleRedis): Promise<string> {
  const remedy = 'set appendonly yes';
  try {
    const [, save = ''] = (await redis.config('GET', 'save')) as string[];
    return save === ''
      ? `Redis keeps nothing on disk (appendonly no, no save): jobs are gone when it restarts; ${remedy}`
      : `Redis only takes snapshots (appendonly no, save ${save}): jobs since the last one are gone when it restarts; ${remedy}`;
  } catch {
    // Managed services and ACL users have no CONFIG.
    return `Redis has no append-only file (whether it takes snapshots cannot be seen): jobs may be gone when it restarts; ${remedy}`;
  }
}
