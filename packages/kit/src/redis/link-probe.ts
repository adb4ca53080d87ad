/**
 * Detects that this process alone has lost Redis, so that its restart helps. If Redis is
 * unavailable for all, no restart does (decisions E, "Health").
 */
import type { Probe } from '../observe/probes.ts';
import { duplicateRedis, pingRedis, type Redis } from './connection.ts';

/** @param redis of the role `request`: its commands end in time */
export function linkProbe(redis: Redis): Probe<'link'> {
  return {
    async ask() {
      const isLost = !(await answers(redis)) && (await answersAnew(redis)) && !(await answers(redis));
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
