/** A worker's connections to a Redis Cluster that is down for a while, as in the middle of a failover. */
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { closeRedis, connectRedis, duplicateRedis } from '../../src/queue/redis.ts';
import { TestCluster } from '../redis-cluster.ts';
import { until } from '../until.ts';
import { logger } from './queue-fixture.ts';

let cluster: TestCluster;
let nodes: Redis[] = [];
beforeAll(async () => {
  cluster = await TestCluster.start();
  nodes = cluster.url
    .replace('redis+cluster://', '')
    .split(',')
    .map((address) => new Redis(`redis://${address}`));
});
afterAll(async () => {
  for (const node of nodes) node.disconnect();
  await cluster.close();
});

async function stateIs(state: 'ok' | 'fail'): Promise<void> {
  await until(`the cluster is ${state}`, async () => {
    const infos = await Promise.all(nodes.map((node) => node.cluster('INFO')));
    return infos.every((info) => info.includes(`cluster_state:${state}`));
  });
}

// BullMQ makes its blocking connection anew when an answer is late, and waits for that: one that never settles is a worker that takes no more jobs.
// Broken by hand (src/queue/redis-clients.ts): without WorkerCluster.connect, or without its duplicate, it never does.
it('a copy that connects while it is down has connected when it is up again', async () => {
  const redis = connectRedis({ url: cluster.url, role: 'worker', logger });
  const copy = duplicateRedis(redis);
  try {
    await copy.exists('{soundpost}');
    copy.disconnect();
    await once(copy, 'end');
    // A slot that nobody has takes the whole cluster down. The first node was given the first ones.
    await Promise.all(nodes.map((node) => node.cluster('DELSLOTS', 0)));
    await stateIs('fail');
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
