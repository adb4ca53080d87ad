/**
 * A worker as a process of its own, to be killed: takes jobs, names them on standard output, and never finishes them. With a
 * third argument it takes three at a time; with a fourth it works on each for a while and finishes it, but is killed by the job named there. HOME_OF_WORKER
 * puts it on another machine.
 */
import { setTimeout as work } from 'node:timers/promises';
import { createLogger } from 'soundpost-kit/observe/logger';
import { connectRedis } from 'soundpost-kit/redis/connection';
import { consumeExtractions } from '../../src/jobs/extraction-consumer.ts';
import { openQueues } from '../../src/jobs/open-queue.ts';
import { WorkerRegistry } from '../../src/jobs/worker-registry.ts';
import { resultOf } from './job-result.ts';

const [url = '', lockSeconds = '', concurrency = '1', deadly] = process.argv.slice(2);
const logger = createLogger('silent');
const requests = connectRedis({ url, role: 'request', logger });
const queues = openQueues(requests, logger);
const registry = new WorkerRegistry({ redis: requests, queues, home: process.env.HOME_OF_WORKER, logger });
consumeExtractions({
  redis: connectRedis({ url, role: 'worker', logger }),
  concurrency: Number(concurrency),
  lockSeconds: Number(lockSeconds),
  registry,
  logger,
  queue: queues.extract,
  async run({ jobId, signal }) {
    process.stdout.write(`${jobId}\n`);
    if (deadly === undefined) {
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    }
    await work(jobId === deadly ? 100 : 300);
    if (jobId === deadly) {
      process.kill(process.pid, 'SIGKILL');
    }
    return resultOf(jobId);
  },
});
