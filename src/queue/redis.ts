/** Connections to Redis, one kind for each way of failing (architecture.md "Known traps"). */
import { setTimeout as delay } from 'node:timers/promises';
import { type Command, Redis, type RedisOptions } from 'ioredis';
import type { Logger } from '../logger.ts';

export type { Redis };

/**
 * Hands all commands of one turn of the event loop to the system at once: a write of its own costs more than all else about a small command. Unlike with
 * automatic pipelining no command waits for the answers of others, so each keeps its own deadline.
 */
class RequestRedis extends Redis {
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
    return super.sendCommand(command, stream);
  }
}
type NetStream = Redis['stream'];

/**
 * - `request`: serves somebody who waits. A command fails at once while Redis is away, and in time for an answer within 2 s
 *   when it hangs.
 * - `worker`: waits for Redis as long as it takes; BullMQ's workers demand it.
 */
export type RedisRole = 'request' | 'worker';

export interface RedisTarget {
  /** `redis://…`, `rediss://…`, or `unix:///path/to/socket`. */
  readonly url: string;
  readonly role: RedisRole;
  readonly logger: Logger;
}

// A request may meet it twice, in what it does and in what it does about that.
const COMMAND_TIMEOUT_MS = 900;
const LONGEST_RECONNECT_DELAY_MS = 2000;

/** All keys of the service begin with this; the braces make them one slot of a Redis Cluster. */
export const KEY_PREFIX = '{soundpost}';

export function connectRedis({ url, role, logger }: RedisTarget): Redis {
  const options: RedisOptions = {
    lazyConnect: false,
    // No enableAutoPipelining: commands would wait for the pipeline under way, and one to a Redis that hangs take twice as long (RequestRedis instead).
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 8), LONGEST_RECONNECT_DELAY_MS),
    ...(role === 'request'
      ? { maxRetriesPerRequest: 1, commandTimeout: COMMAND_TIMEOUT_MS, enableOfflineQueue: true }
      : { maxRetriesPerRequest: null }),
  };
  const Connection = role === 'request' ? RequestRedis : Redis;
  const redis = url.startsWith('unix://')
    ? new Connection(url.slice('unix://'.length), options)
    : new Connection(url, options);
  // Without a listener ioredis prints to the console and an EventEmitter would throw.
  let reported = '';
  redis.on('error', (error: Error) => {
    if (reported !== error.message) {
      reported = error.message;
      logger.warn({ role, error: error.message }, 'redis connection failed');
    }
  });
  redis.on('ready', () => {
    reported = '';
  });
  return redis;
}

const QUIT_TIMEOUT_MS = 2000;

/** Closes a connection without waiting for a Redis that is not there, or hangs. */
export async function closeRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') {
    await Promise.race([
      redis.quit().catch(() => undefined),
      delay(QUIT_TIMEOUT_MS, undefined, { ref: false }),
    ]);
  }
  redis.disconnect();
}
