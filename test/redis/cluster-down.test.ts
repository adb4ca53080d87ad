/** A worker's connections to a Redis Cluster that is down for a while, as in the middle of a failover. */
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { closeRedis, connectRedis, duplicateRedis, pingRedis } from 'soundpost-kit/redis/connection';
import { TestCluster } from 'soundpost-testing/redis-cluster';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { consumeExtractions } from '../../src/jobs/extraction-consumer.ts';
import { JobQueue } from '../../src/jobs/job-queue.ts';
import { openQueue } from '../../src/jobs/open-queue.ts';
import { resultOf } from '../jobs/job-result.ts';
import { logger, newJobId, payloadOf, TENANT } from '../jobs/queue-fixture.ts';

let cluster: TestCluster;
let nodes: Redis[] = [];
beforeAll(async () => {
  cluster = await TestCluster.start();
  nodes = cluster.url
    .replace('redis+cluster://', '')
    .split(',')
    .map((address) => new Redis(`redis://${address}`).on('error', () => undefined));
});
afterAll(async () => {
  for (const node of nodes) node.disconnect();
  await cluster.close();
});

/** @param insist done to each node before it is asked */
async function stateIs(
  state: 'ok' | 'fail',
  insist: (node: Redis) => Promise<unknown> = async () => undefined,
): Promise<void> {
  await until(`the cluster is ${state}`, async () => {
    await Promise.all(nodes.map(insist));
    const infos = await Promise.all(nodes.map((node) => node.cluster('INFO')));
    return infos.every((info) => info.includes(`cluster_state:${state}`));
  });
}

// BullMQ makes its blocking connection anew when an answer is late, and waits for that: one that never settles is a worker that takes no more jobs.
// Broken by hand (packages/kit/src/redis/clients.ts): without WorkerCluster.connect, or without its duplicate, it never does.
it('a copy that connects while it is down has connected when it is up again', async () => {
  const redis = connectRedis({ url: cluster.url, role: 'worker', logger });
  const copy = duplicateRedis(redis);
  try {
    await copy.exists('{soundpost}');
    copy.disconnect();
    await once(copy, 'end');
    // A slot that nobody has takes the whole cluster down. The first node was given the first ones.
    // Again until all agree: one that heard meanwhile of its owner has given it back to that one.
    await stateIs('fail', (node) => node.cluster('DELSLOTS', 0).catch(() => undefined));
    const connecting = copy.connect();
    await once(copy, 'reconnecting');
    await nodes[0]?.cluster('ADDSLOTS', 0);
    await stateIs('ok');
    await connecting;
    expect(await copy.exists('{soundpost}')).toBe(0);
  } finally {
    copy.disconnect();
    await closeRedis(redis);
  }
});

it('a job that runs while every node is away is done when they are back', async () => {
  const [asking, working] = (['request', 'worker'] as const).map((role) =>
    connectRedis({ url: cluster.url, role, logger }),
  );
  if (asking === undefined || working === undefined) throw new Error('two connections');
  const limits = { submitPerMinute: 100, unfinishedPerTenant: 100, queueLimit: 100 };
  const jobs = new JobQueue({
    redis: asking,
    holdUpload: async () => true,
    limits,
    recordSeconds: 3600,
    logger,
  });
  const began = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const queue = openQueue('extract', asking, logger);
  const consumer = consumeExtractions({
    redis: working,
    concurrency: 1,
    lockSeconds: 30,
    logger,
    queue,
    async run({ jobId, report }) {
      began.resolve();
      await letGo.promise;
      report({ progress: 50, currentStep: 'extracting_audio', inputFile: null });
      return resultOf(jobId);
    },
  });
  try {
    const jobId = newJobId();
    // A submission does not wait for a connection as long as a busy machine may take for it.
    await until('the cluster is found', () =>
      pingRedis(asking).then(
        () => true,
        () => false,
      ),
    );
    await jobs.submit(TENANT, [{ jobId, payload: payloadOf(TENANT) }]);
    await began.promise;
    const startAgain = await cluster.crash();
    letGo.resolve();
    await until('it is seen that nobody is there', () => working.status !== 'ready');
    await startAgain();
    await until(
      'the job is done',
      async () => (await jobs.read(jobId).catch(() => undefined))?.status === 'completed',
      60_000,
    );
  } finally {
    await consumer.close(0);
    await Promise.all([jobs.close(), queue.close()]);
    await Promise.all([closeRedis(asking), closeRedis(working)]);
  }
});
