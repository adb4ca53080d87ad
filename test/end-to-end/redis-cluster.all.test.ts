/** The whole service on a Redis Cluster of three nodes. */
import { randomUUID } from 'node:crypto';
import { TestCluster } from 'soundpost-testing/redis-cluster';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Tour, takeTour } from './redis-tour.ts';
import { useVideos } from './videos.ts';

const videos = useVideos();
let cluster: TestCluster;
let tour: Tour;

beforeAll(async () => {
  cluster = await TestCluster.start();
});
afterAll(async () => {
  await tour?.close();
  await cluster?.close();
});

it('does all that it does, and every key lies on one node under the prefix', async () => {
  tour = await takeTour(videos, { REDIS_URL: cluster.url, LOG_LEVEL: 'info', WATCHDOG_SECONDS: '0' });
  const keys = await cluster.keys();
  expect(keys.flat().length).toBeGreaterThan(30);
  expect(keys.flat().filter((key) => !key.startsWith('{soundpost}:'))).toEqual([]);
  expect(keys.filter((ofNode) => ofNode.length > 0)).toHaveLength(1);
  for (const process of tour.processes) {
    expect(process.output()).not.toMatch(/MOVED|CROSSSLOT|non local key/);
  }
});

// What a worker's connection needs for it: test/redis/cluster-down.test.ts.
it('goes on with the same processes when a replica takes the place of the node that had the keys', async () => {
  const before = await tour.client.call('GET', '/v1/jobs');
  await cluster.replaceOwner();
  // What is answered 503 may have been done all the same.
  const once = { 'Idempotency-Key': randomUUID() };
  const accepted = await until('the API takes jobs again', async () => {
    const answer = await tour.client.upload(videos.talk, { output: { format: 'mp3' } }, once);
    return answer.status === 202 && answer.body.data;
  });
  await tour.client.completed(accepted.jobId);
  const after = await tour.client.call('GET', '/v1/jobs');
  expect(after.body.data.jobs).toHaveLength(before.body.data.jobs.length + 1);
});
