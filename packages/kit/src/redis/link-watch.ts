/**
 * Tells a process that alone has lost Redis, which only its restart mends, from a Redis that is away for everybody, which no restart mends
 * (decisions E, "Health").
 */
import type { Logger } from 'soundpost-base/logger';
import { duplicateRedis, pingRedis, type Redis } from './connection.ts';

const LOOK_EVERY_MS = 5000;
/** So many looks in a row: a connection that is being made anew has its time, also in a failover. */
const LOOKS = 3;

export interface LinkWatch {
  /** Redis answers a fresh connection, and has not answered this one for three looks in a row. */
  readonly isCutOff: boolean;
  close(): void;
}

/** @param redis of the role `request`: its commands end in time */
export function watchLink(redis: Redis, logger: Logger, everyMs = LOOK_EVERY_MS): LinkWatch {
  let failedLooks = 0;
  let isClosed = false;
  let timer: NodeJS.Timeout;

  const look = async (): Promise<void> => {
    const isLost = !(await answers(redis)) && (await answersAnew(redis)) && !(await answers(redis));
    failedLooks = isLost ? failedLooks + 1 : 0;
    if (failedLooks === LOOKS) {
      logger.error('Redis answers a fresh connection and not ours: /health/live is 503 until it does');
    }
    if (!isClosed) wait();
  };
  const wait = (): void => {
    timer = setTimeout(() => void look(), everyMs).unref();
  };
  wait();
  return {
    get isCutOff() {
      return failedLooks >= LOOKS;
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
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

async function answersAnew(redis: Redis): Promise<boolean> {
  const fresh = duplicateRedis(redis);
  // Without a listener ioredis prints to the console.
  fresh.on('error', () => undefined);
  try {
    return await answers(fresh);
  } finally {
    fresh.disconnect();
  }
}
