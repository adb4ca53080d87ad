/** What has to hold before a job is taken, and which of the waiting jobs comes next. */

import { ownKey } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import type { ExtractionJob } from '../../src/jobs/extraction-consumer.ts';
import { VIRTUAL_TIME_KEY } from '../../src/jobs/names.ts';
import { chargeProcessor, processorDebtKey, tenantJobsKey } from '../../src/jobs/reservation.ts';
import { jobKey, queueKey } from './bullmq-keys.ts';
import { resultOf } from './job-result.ts';
import { aborted, newJobId, payloadOf, TENANT, type TestQueue, useQueue } from './queue-fixture.ts';

const queue = useQueue();

const jobsOf = (tenant: string, count: number) =>
  Array.from({ length: count }, () => ({ jobId: newJobId(), payload: payloadOf(tenant) }));

/** Ids in the order in which workers would get them. */
async function waitingOrder({ redis }: TestQueue): Promise<string[]> {
  return redis.zrange(queueKey('extract', 'prioritized'), '0', '-1');
}

describe('the rate', () => {
  it('lets a key submit its number a minute, and says how many are left', async () => {
    const jobs = queue().jobQueue({ submitPerMinute: 3 });
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 2))).toMatchObject({
      outcome: 'reserved',
      rate: { limit: 3, remaining: 1 },
    });
    const refused = await jobs.submit(TENANT, jobsOf(TENANT, 2));
    expect(refused).toMatchObject({ outcome: 'rate-limited', rate: { limit: 3, remaining: 1 } });
    expect(refused.rate.resetSeconds).toBeGreaterThan(0);
    expect(refused.rate.resetSeconds).toBeLessThanOrEqual(60);
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 1))).toMatchObject({
      outcome: 'reserved',
      rate: { remaining: 0 },
    });
    expect(await jobs.submit('tenant02', jobsOf('tenant02', 1))).toMatchObject({ outcome: 'reserved' });
  });

  it('counts the bytes of the records beside it; a refusal counts against neither', async () => {
    const jobs = queue().jobQueue({ submitPerMinute: 10, recordBytesPerMinute: 5000 });
    const fat = () => [
      {
        jobId: newJobId(),
        payload: payloadOf(TENANT, { webhook: `https://client.example/${'x'.repeat(2000)}` }),
      },
    ];
    expect(await jobs.submit(TENANT, fat())).toMatchObject({ outcome: 'reserved' });
    expect(await jobs.submit(TENANT, fat())).toMatchObject({ outcome: 'reserved', rate: { remaining: 8 } });
    const refused = await jobs.submit(TENANT, fat());
    expect(refused).toMatchObject({ outcome: 'too-many-bytes', rate: { limit: 5000 } });
    expect(refused.rate.remaining).toBeLessThan(1000);
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 1))).toMatchObject({
      outcome: 'reserved',
      rate: { remaining: 7 },
    });
  });

  it('begins anew when its minute is over', async () => {
    const jobs = queue().jobQueue({ submitPerMinute: 1 });
    await jobs.submit(TENANT, jobsOf(TENANT, 1));
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 1))).toMatchObject({ outcome: 'rate-limited' });
    // The end of the window is the end of its key in Redis.
    await queue().redis.pexpire(ownKey('rate', 'submit', TENANT), 0);
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 1))).toMatchObject({ outcome: 'reserved' });
  });
});

describe('the number of unfinished jobs', () => {
  it('is limited a key', async () => {
    const jobs = queue().jobQueue({ unfinishedPerTenant: 2 });
    await jobs.submit(TENANT, jobsOf(TENANT, 2));
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 1))).toMatchObject({ outcome: 'too-many-unfinished' });
    expect(await jobs.submit('tenant02', jobsOf('tenant02', 2))).toMatchObject({ outcome: 'reserved' });
  });

  it('counts neither jobs that have ended nor jobs that are gone, though nobody told it', async () => {
    const { redis } = queue();
    const jobs = queue().jobQueue({ unfinishedPerTenant: 3 });
    const [first, second, third] = jobsOf(TENANT, 3);
    if (!first || !second || !third) throw new Error('three jobs');
    const submitting = queue().jobQueue({});
    await submitting.submit(TENANT, [first, second, third]);
    // Else it may still confirm them, find one gone, and add it again.
    await submitting.close();
    queue().consume(async ({ jobId, signal }) => (jobId === first.jobId ? resultOf(jobId) : aborted(signal)));
    await queue().reaches(first.jobId, 'completed');
    await redis.del(jobKey('extract', third.jobId));
    await redis.zrem(queueKey('extract', 'prioritized'), third.jobId);
    // A job whose reservation is fresh may be about to be added.
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 2))).toMatchObject({ outcome: 'too-many-unfinished' });
    await redis.zadd(tenantJobsKey(TENANT), Date.now() - 60_000, third.jobId);
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 2))).toMatchObject({ outcome: 'reserved' });
    expect(await jobs.submit(TENANT, jobsOf(TENANT, 1))).toMatchObject({ outcome: 'too-many-unfinished' });
  });

  it('does not let two submissions at once both have the last place', async () => {
    const jobs = queue().jobQueue({ unfinishedPerTenant: 5 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => jobs.submit(TENANT, jobsOf(TENANT, 1))),
    );
    expect(answers.filter(({ outcome }) => outcome === 'reserved')).toHaveLength(5);
  });
});

describe('the queue', () => {
  it('is full at its limit, whoever fills it', async () => {
    const jobs = queue().jobQueue({ queueLimit: 3 });
    await jobs.submit(TENANT, jobsOf(TENANT, 2));
    expect(await jobs.submit('tenant02', jobsOf('tenant02', 2))).toMatchObject({ outcome: 'queue-full' });
    expect(await jobs.submit('tenant02', jobsOf('tenant02', 1))).toMatchObject({ outcome: 'reserved' });
  });

  it.each(['submitPerMinute', 'unfinishedPerTenant', 'queueLimit'] as const)(
    'takes all jobs of a batch or none, at the limit %s',
    async (limit) => {
      const { redis } = queue();
      const jobs = queue().jobQueue({ [limit]: 3 });
      expect((await jobs.submit(TENANT, jobsOf(TENANT, 4))).outcome).not.toBe('reserved');
      expect(await redis.exists(ownKey('unfinished', TENANT), ownKey('jobs', TENANT))).toBe(0);
      expect(await jobs.waiting()).toBe(0);
      expect(await jobs.submit(TENANT, jobsOf(TENANT, 3))).toMatchObject({ outcome: 'reserved' });
      expect(await jobs.waiting()).toBe(3);
    },
  );
});

describe('fairness', () => {
  /** Runs waiting jobs one after the other; answers in which order they were taken. */
  async function runAll(count: number): Promise<string[]> {
    const order: string[] = [];
    const { promise: done, resolve } = Promise.withResolvers<void>();
    queue().consume(async ({ jobId }) => {
      order.push(jobId);
      if (order.length === count) resolve();
      return resultOf(jobId);
    });
    await done;
    return order;
  }

  it('gives a key that used more processor time than it may the turns of low, until it is paid off', async () => {
    const { redis, jobs } = queue();
    const priorities = async (): Promise<number[]> => {
      const reservation = await jobs.submit(TENANT, jobsOf(TENANT, 3));
      if (reservation.outcome !== 'reserved') throw new Error(reservation.outcome);
      const [first = 0] = reservation.priorities;
      return reservation.priorities.map((priority) => priority - first);
    };
    const normal = [0, 4, 8];
    expect(await priorities()).toEqual(normal);
    // A minute's worth is no debt yet.
    expect(await chargeProcessor(redis, TENANT, 30, 30)).toBe(false);
    expect(await priorities()).toEqual(normal);
    expect(await chargeProcessor(redis, TENANT, 90, 30)).toBe(true);
    expect(await priorities()).toEqual([0, 16, 32]);
    // By now it would be paid off in four minutes.
    const debtMs = Number(await redis.pttl(processorDebtKey(TENANT)));
    expect(debtMs).toBeGreaterThan(200_000);
    expect(debtMs).toBeLessThanOrEqual(240_000);
    await redis.del(processorDebtKey(TENANT));
    expect(await priorities()).toEqual(normal);
  });

  it('lets a single job pass the hundreds that another key has waiting', async () => {
    const many = jobsOf(TENANT, 200);
    const { jobs } = queue();
    const order: string[] = [];
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // Not all at once: Redis is given no longer for many than for one.
    for (let from = 0; from < many.length; from += 100)
      await jobs.submit(TENANT, many.slice(from, from + 100));
    queue().consume(
      async ({ jobId }) => {
        order.push(jobId);
        await gates[order.length - 1]?.promise;
        return resultOf(jobId);
      },
      { concurrency: 2 },
    );
    await expect.poll(() => order.length).toBe(2);
    const single = await queue().submit('tenant02');
    for (const gate of gates) gate.resolve();
    await queue().reaches(single, 'completed');
    // The two that were running, and what the start of the second worker's turn may have taken meanwhile.
    expect(order.indexOf(single)).toBeLessThanOrEqual(3);
  });

  it('gives two keys with many jobs turns in equal parts', async () => {
    const mine = await queue().submitMany(20, TENANT);
    const others = await queue().submitMany(20, 'tenant02');
    const order = await runAll(40);
    const firstHalf = order.slice(0, 20).filter((jobId) => mine.includes(jobId)).length;
    // While one key's job runs long, the other's may take a place beyond: one more or less.
    expect(Math.abs(firstHalf - 10)).toBeLessThanOrEqual(1);
    // Within a key, first come, first served; the two that begin together, one beyond, may swap.
    for (const submitted of [mine, others]) {
      const begun = order.filter((jobId) => submitted.includes(jobId));
      expect(begun.filter((jobId, place) => Math.abs(submitted.indexOf(jobId) - place) > 1)).toEqual([]);
    }
  });

  it('gives a newcomer no more than its share', async () => {
    const early = await queue().submitMany(60, TENANT);
    const order: string[] = [];
    const done = Promise.withResolvers<void>();
    const disk = queue().disk();
    const run = async ({ jobId }: ExtractionJob) => {
      order.push(jobId);
      // Beside a job that runs the newcomer would have a place of its own.
      if (order.length === 20) await disk.becomes('low');
      if (order.length === 80) done.resolve();
      return resultOf(jobId);
    };
    queue().consume(run, { probes: disk.probes });
    await queue().reaches(early[19] ?? '', 'completed');
    await queue().submitMany(20, 'tenant02');
    await disk.becomes('ok');
    await done.promise;
    const next = order.slice(20, 40).filter((jobId) => early.includes(jobId));
    expect(next.length).toBeGreaterThanOrEqual(9);
    expect(next.length).toBeLessThanOrEqual(11);
  });

  it('serves priorities as 16 to 4 to 1, and starves none', async () => {
    const low = await queue().submitMany(32, TENANT, { priority: 'low' });
    const normal = await queue().submitMany(32, TENANT, { priority: 'normal' });
    const high = await queue().submitMany(32, TENANT, { priority: 'high' });
    const firsts = (await runAll(96)).slice(0, 42);
    const share = (ids: string[]) => firsts.filter((jobId) => ids.includes(jobId)).length;
    expect([share(high), share(normal), share(low)]).toEqual([32, 8, 2]);
  });

  it('gives a job that waited for its next try its old place, although nothing else was waiting', async () => {
    const { redis, jobs } = queue();
    const ids = await queue().submitMany(50, TENANT);
    const unlucky = ids.at(-1) ?? '';
    const order: string[] = [];
    const done = Promise.withResolvers<void>();
    const disk = queue().disk();
    const run = async ({ jobId }: ExtractionJob) => {
      order.push(jobId);
      if (order.length === 50) {
        // Nobody else brings the delayed job forward: it waits until others have come.
        await disk.becomes('low');
        throw new Error('the disk is full');
      }
      if (jobId === unlucky) done.resolve();
      return resultOf(jobId);
    };
    queue().consume(run, { probes: disk.probes });
    const delayed = queueKey('extract', 'delayed');
    const [, score = '0'] = await until('the job waits for its next try', async () => {
      const entry = await redis.zrange(delayed, '0', '-1', 'WITHSCORES');
      return entry.length > 0 && entry;
    });
    await jobs.submit('tenant02', jobsOf('tenant02', 200));
    // BullMQ's score of a delayed job is its time * 2^12 + a counter.
    await until('the time of the next try has come', () => Date.now() > Number(score) / 4096);
    await disk.becomes('ok');
    await done.promise;
    expect(order.lastIndexOf(unlucky)).toBeLessThan(60);
  });

  it('keeps the order of a key that has more waiting than there are places', async () => {
    const { redis, jobs } = queue();
    const [first, ...others] = jobsOf(TENANT, 4);
    if (first === undefined) throw new Error('four jobs');
    await jobs.submit(TENANT, [first]);
    await redis.hset(ownKey('flows'), `${TENANT}:4`, 2_097_147);
    for (const job of others) {
      expect(await jobs.submit(TENANT, [job])).toMatchObject({ outcome: 'reserved' });
    }
    const single = await queue().submit('tenant02');
    expect(await waitingOrder(queue())).toEqual(
      [first, ...others].map(({ jobId }) => jobId).toSpliced(1, 0, single),
    );
  });
});

describe('the virtual time', () => {
  it('goes back before priorities run out, and everybody keeps his place', async () => {
    const { redis, jobs } = queue();
    const hold = Promise.withResolvers<void>();
    const consumer = queue().consume(async ({ jobId }) => {
      await hold.promise;
      return resultOf(jobId);
    });
    // Its place, and the one that a key without any may take beside it.
    for (const tenant of [TENANT, 'tenant05']) {
      await queue().reaches(await queue().submit(tenant), 'processing');
    }
    await redis.set(VIRTUAL_TIME_KEY, 1_048_574);
    const before = [
      ...(await queue().submitMany(3, TENANT)),
      ...(await queue().submitMany(3, 'tenant02', { priority: 'low' })),
      ...(await queue().submitMany(3, 'tenant03', { priority: 'high' })),
    ];
    const order = await waitingOrder(queue());
    expect(new Set(order)).toEqual(new Set(before));

    await redis.set(VIRTUAL_TIME_KEY, 1_048_576);
    const reservation = await jobs.submit('tenant04', jobsOf('tenant04', 1));
    expect(reservation).toMatchObject({ outcome: 'reserved', priorities: [1] });
    expect(Number(await redis.get(VIRTUAL_TIME_KEY))).toBe(1);
    expect((await waitingOrder(queue())).filter((jobId) => before.includes(jobId))).toEqual(order);
    // What a worker hands back, or tries again, goes to the place that its record names.
    for (const jobId of order) {
      const score = Number(await redis.zscore(queueKey('extract', 'prioritized'), jobId));
      expect(Number(await redis.hget(jobKey('extract', jobId), 'priority'))).toBe(
        Math.floor(score / 2 ** 32),
      );
    }
    // The newcomer's turn comes among those of the others, and the next job of a key after those it has waiting.
    const next = await queue().submit('tenant02', { priority: 'low' });
    const places = await waitingOrder(queue());
    const lows = order.filter((jobId) => before.slice(3, 6).includes(jobId));
    expect(places.indexOf(next)).toBeGreaterThan(places.indexOf(lows.at(-1) ?? ''));
    hold.resolve();
    await consumer.close(1000);
  });
});
