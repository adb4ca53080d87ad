/** A worker as a process of its own, to be killed: takes one job after the other, names it, and never finishes it. */
import { createLogger } from '../../src/logger.ts';
import { consumeExtractions } from '../../src/queue/extraction-consumer.ts';
import { connectRedis } from '../../src/queue/redis.ts';

const [url = '', lockSeconds = ''] = process.argv.slice(2);
const logger = createLogger('silent');
consumeExtractions({
  redis: connectRedis({ url, role: 'worker', logger }),
  concurrency: 1,
  lockSeconds: Number(lockSeconds),
  logger,
  run({ jobId }) {
    process.stdout.write(`${jobId}\n`);
    return new Promise(() => undefined);
  },
});
