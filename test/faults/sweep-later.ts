/**
 * One sweep of the janitor and of the storage as they will be a day from now, in a process of its own, whose clock nobody
 * else looks at: `node sweep-later.ts <redis url> <DATA_DIR>`.
 */
import { Readable } from 'node:stream';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis } from 'soundpost-kit/redis/connection';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import { until } from 'soundpost-testing/until';
import { Janitor } from '../../src/jobs/janitor/janitor.ts';

const DAY_S = 24 * 60 * 60;
const MINUTE_S = 60;

const [redisUrl = '', dataDir = ''] = process.argv.slice(2);
const now = Date.now;
const logger = createLogger('warn');
const redis = connectRedis({ url: redisUrl, role: 'worker', logger });
const storage = createFileStorage({ root: dataDir });
const janitor = new Janitor({
  redis,
  outputTtlSeconds: DAY_S,
  jobTtlSeconds: 7 * DAY_S,
  removeObject: (key) => storage.remove(key),
  removeUpload: async () => undefined,
  logger,
});
// How far the walks came is put back: the service's own janitor must not think that it is later than it is.
const cursorsKey = '{soundpost}:sp:janitor';
const cursors = await redis.hgetall(cursorsKey);
Date.now = () => now() + (MINUTE_S + 5) * 1000;
// A janitor that was killed in its work would keep its lease for a minute.
await redis.del('{soundpost}:sp:lease:janitor');
await until('the janitor gets its lease', () => janitor.sweep());
await redis.del(cursorsKey);
if (Object.keys(cursors).length > 0) await redis.hset(cursorsKey, cursors);
await closeRedis(redis);

Date.now = () => now() + (DAY_S + MINUTE_S) * 1000;
// A storage sweeps with its first write.
await storage.write('swept', Readable.from(['']));
await storage.remove('swept');
