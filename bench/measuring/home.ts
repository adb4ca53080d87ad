/** Where processes of the service live while they are measured: a folder, a Redis, and the settings of production without limits of rate and number. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dieWithParent } from 'soundpost-base/launcher';
import { startEmbeddedRedis } from 'soundpost-kit/redis/embedded';
import { ServiceHome } from 'soundpost-testing/service';

export interface BenchHome {
  readonly folder: string;
  /** A Redis as the product runs its own: append-only file, synced every second. */
  readonly redisUrl: string;
  readonly home: ServiceHome;
  /** Ends all that was started there, and removes the folder. */
  remove(): Promise<void>;
}

const MANY = '1000000000';

export async function openHome(environment: Readonly<Record<string, string>>): Promise<BenchHome> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-bench-'));
  const redis = await startEmbeddedRedis({
    folder: join(folder, 'redis'),
    launcher: dieWithParent('TERM', process.env.PATH ?? ''),
  });
  const home = new ServiceHome(folder, {
    REDIS_URL: redis.url,
    SECRET_KEY: randomBytes(32).toString('hex'),
    RATE_SUBMIT_PER_MINUTE: MANY,
    RATE_READ_PER_MINUTE: MANY,
    UNFINISHED_PER_KEY: MANY,
    QUEUE_LIMIT: MANY,
    ...environment,
  });
  // A benchmark that fails leaves nothing behind that would take part in the next one.
  const endAll = (): void => {
    for (const pid of home.notePids()) process.kill(pid, 'SIGKILL');
  };
  process.once('exit', endAll);
  return {
    folder,
    redisUrl: redis.url,
    home,
    async remove() {
      process.off('exit', endAll);
      await home.remove();
      await redis.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
