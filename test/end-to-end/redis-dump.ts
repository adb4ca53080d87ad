/** Everything that a Redis holds, as text by key. */
import { Redis } from 'ioredis';

/** Fields and values of a key stand one a line. */
export async function dumpRedis(socketPath: string): Promise<ReadonlyMap<string, string>> {
  const redis = new Redis(socketPath);
  try {
    const keys = await redis.keys('*');
    return new Map(await Promise.all(keys.map(async (key) => [key, await contentOf(redis, key)] as const)));
  } finally {
    redis.disconnect();
  }
}

async function contentOf(redis: Redis, key: string): Promise<string> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return (await redis.get(key)) ?? '';
    case 'hash':
      return Object.entries(await redis.hgetall(key))
        .flat()
        .join('\n');
    case 'list':
      return (await redis.lrange(key, 0, -1)).join('\n');
    case 'set':
      return (await redis.smembers(key)).join('\n');
    case 'zset':
      return (await redis.zrange(key, '0', '-1')).join('\n');
    case 'stream': {
      const entries = await redis.xrange(key, '-', '+');
      return entries.flatMap(([id, fields]) => [id, ...fields]).join('\n');
    }
    case 'none':
      return '';
    default:
      throw new Error(`the dump knows nothing of ${type}, the type of ${key}`);
  }
}
