/** What is told of the queues, against what was put into them. */
import { describe, expect, it } from 'vitest';
import { type QueueName, queueNames } from '../../src/jobs/names.ts';
import { closeQueues, openQueues, readQueues } from '../../src/jobs/open-queue.ts';
import { jobKey, queueKey } from './bullmq-keys.ts';
import { aborted, logger, useQueue } from './queue-fixture.ts';

const queue = useQueue();

async function states() {
  const queues = openQueues(queue().redis, logger);
  queue().onClose(() => closeQueues(queues));
  return readQueues(queue().redis, queues);
}

async function stateOf(name: QueueName) {
  return (await states()).find((state) => state.queue === name);
}

const isAged = (seconds: number) => (age: number) => age >= seconds && age < seconds + 10;

async function makeOlder(id: string, seconds: number, name: QueueName = 'extract'): Promise<void> {
  await queue().redis.hset(jobKey(name, id), 'timestamp', Date.now() - seconds * 1000);
}

describe('an empty queue', () => {
  it('has nobody who waits', async () => {
    const empty = await states();
    expect(empty.map((state) => state.queue)).toEqual(Object.keys(queueNames));
    for (const state of empty) {
      expect(state).toMatchObject({
        waiting: 0,
        active: 0,
        delayed: 0,
        waiting_children: 0,
        oldestAgeSeconds: 0,
      });
    }
  });
});

describe('of extractions', () => {
  it('are told those that wait, those that run, and the parents of both', async () => {
    await queue().submitMany(3, 'tenant01', { webhook: 'https://hooks.example/1' });
    const began = Promise.withResolvers<void>();
    queue().consume(({ signal }) => {
      began.resolve();
      return aborted(signal);
    });
    await began.promise;
    expect(await stateOf('extract')).toMatchObject({ waiting: 2, active: 1, delayed: 0 });
    expect(await stateOf('completion')).toMatchObject({ waiting: 0, waiting_children: 3 });
  });

  it('the oldest is found wherever it stands, also one that came back to the plain list', async () => {
    const ids = await queue().submitMany(50);
    const [first = '', , third = ''] = ids;
    await makeOlder(third, 300);
    expect((await stateOf('extract'))?.oldestAgeSeconds).toSatisfy(isAged(300));
    // BullMQ puts a job whose worker was lost there.
    await queue().redis.zrem(queueKey('extract', 'prioritized'), first);
    await queue().redis.rpush(queueKey('extract', 'wait'), first);
    await makeOlder(first, 900);
    await queue().redis.hset(jobKey('extract', first), 'processedOn', Date.now());
    expect(await stateOf('extract')).toMatchObject({
      waiting: 50,
      oldestAgeSeconds: expect.toSatisfy(isAged(900)),
    });
  });

  it('the oldest is the first of a key, however many of another key are before it in the line', async () => {
    await queue().submitMany(300, 'eager001', { priority: 'high' });
    const [first = ''] = await queue().submitMany(1, 'patient1', { priority: 'low' });
    await makeOlder(first, 500);
    expect((await stateOf('extract'))?.oldestAgeSeconds).toSatisfy(isAged(500));
  });
});

describe('of announcements', () => {
  it('one that waits for its first try counts from when it was added', async () => {
    await queue().queue('webhook').add('job.completed', {}, { jobId: 'a-webhook' });
    await makeOlder('a-webhook', 120, 'webhook');
    expect(await stateOf('webhook')).toMatchObject({
      waiting: 1,
      oldestAgeSeconds: expect.toSatisfy(isAged(120)),
    });
  });

  it('one whose next try has a time counts from then, and not before', async () => {
    await queue().queue('webhook').add('job.completed', {}, { jobId: 'b-webhook', delay: 60_000 });
    await makeOlder('b-webhook', 7200, 'webhook');
    expect(await stateOf('webhook')).toMatchObject({ waiting: 0, delayed: 1, oldestAgeSeconds: 0 });
    const due = (Date.now() - 45_000) * 0x1000;
    await queue().redis.zadd(queueKey('webhook', 'delayed'), due, 'b-webhook');
    expect((await stateOf('webhook'))?.oldestAgeSeconds).toSatisfy(isAged(45));
  });

  it('one that was tried before and is about to be again does not count from its first time', async () => {
    await queue().queue('webhook').add('job.completed', {}, { jobId: 'c-webhook' });
    await makeOlder('c-webhook', 7200, 'webhook');
    await queue().redis.hset(jobKey('webhook', 'c-webhook'), 'processedOn', Date.now() - 7000);
    expect(await stateOf('webhook')).toMatchObject({ waiting: 1, oldestAgeSeconds: 0 });
  });
});
