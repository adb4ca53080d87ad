/** What we use of BullMQ's inside, against what its public API says of the same jobs: an upgrade that changes either fails here. */
import { type Job, UnrecoverableError } from 'bullmq';
import { ServiceError } from 'soundpost-contract/errors';
import type { Redis } from 'soundpost-kit/redis/connection';
import { RedisScript, readScript } from 'soundpost-kit/redis/script';
import { describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import {
  BULLMQ_VERSION,
  bringFirst,
  checkBullmq,
  confirmVoice,
  endedBetween,
  fetchExtraction,
  hashOf,
  markCancelled,
  noteErased,
  noteSending,
  noteServed,
  QUEUE_PLACES_KEYS,
  readExtraction,
  recordKey,
  reportProgress,
  returnUnstarted,
  startAttempt,
  wakeWorker,
} from '../../src/jobs/bullmq-internals.ts';
import { DEAD_WORKERS_KEY, WORKER_BEATS_KEY } from '../../src/jobs/names.ts';
import { apiKeyKey, PAUSED_FIELD } from '../../src/jobs/tenants/api-keys.ts';
import { resultOf } from './job-result.ts';
import { newJobId, payloadOf, TENANT, useQueue } from './queue-fixture.ts';

const ofSend = (jobId: string) => ({
  ...{ jobId, sendId: 'send-1', id: 'send-1', deliveries: '{soundpost}:sp:deliveries' },
  ...{ keepSeconds: 60, kept: undefined },
});

const queue = useQueue();

async function jobOf(jobId: string): Promise<Job> {
  const job = await queue().queue('extract').getJob(jobId);
  if (job === undefined) throw new Error(`there is no ${jobId}`);
  return job;
}

/** Submits a job and takes it up as a worker does, under the given token. */
async function taken(token: string): Promise<string> {
  const jobId = await queue().submit();
  const worker = queue().worker('extract');
  expect((await worker.getNextJob(token))?.id).toBe(jobId);
  return jobId;
}

/** Runs Lua behind what the file defines. */
function run(file: string, lua: string, keys: readonly string[] = [], args: readonly string[] = []) {
  const definitions = readScript(new URL(`../../src/jobs/lua/bullmq/${file}`, import.meta.url));
  return new RedisScript(`${definitions}${lua}`).run(queue().redis, keys, args);
}

describe('BullMQ', () => {
  it('is of the version that its inside is known of', () => {
    expect(manifest.dependencies.bullmq).toBe(BULLMQ_VERSION);
    expect(() => checkBullmq()).not.toThrow();
  });

  it('of another version is refused, with what to do', () => {
    expect(() => checkBullmq('6.8.0')).toThrow(/6\.8\.0 .* 6\.7\.0: install .*npm install bullmq@6\.7\.0/);
  });
});

describe("a job's record", () => {
  it('is where BullMQ has it', () => {
    expect(recordKey('voice', 'a-voice')).toBe(queue().queue('voice').toKey('a-voice'));
  });

  it('says what BullMQ says of a job that waits, and of one that ended', async () => {
    const { redis } = queue();
    const jobId = await queue().submit();
    const waiting = await jobOf(jobId);
    expect(readExtraction(await fetchExtraction(redis, jobId))).toMatchObject({
      data: JSON.stringify(waiting.data),
      createdAtMs: waiting.timestamp,
      startedAtMs: null,
      finishedAtMs: null,
      result: undefined,
    });
    queue().consume(async (job) => resultOf(job.jobId));
    await queue().reaches(jobId, 'completed');
    const { returnvalue, processedOn, finishedOn, progress } = await jobOf(jobId);
    expect(readExtraction(await fetchExtraction(redis, jobId))).toMatchObject({
      startedAtMs: processedOn,
      finishedAtMs: finishedOn,
      result: JSON.stringify(returnvalue),
      progress: JSON.stringify(progress),
      attemptTokens: [expect.stringMatching(/^[0-9a-f]{16}$/)],
    });
  });

  it('says why BullMQ says it failed', async () => {
    const jobId = await queue().submit();
    queue().consume(async () => {
      throw new ServiceError('EXTRACTION_FAILED', 'it has no sound');
    });
    await queue().reaches(jobId, 'failed');
    const { failedReason } = await jobOf(jobId);
    expect(readExtraction(await fetchExtraction(queue().redis, jobId))?.failure).toBe(failedReason);
  });

  it('comes along with a script as it is read alone', async () => {
    const { redis } = queue();
    const jobId = await queue().submit();
    await noteErased(redis, jobId);
    await queue().queue('voice').add('send', {}, { jobId: 'send-1' });
    expect(await confirmVoice(redis, ofSend(jobId))).toBe(true);
    const values = await run('read-record.lua', 'return readRecord(KEYS[1])', [recordKey('extract', jobId)]);
    const along = readExtraction(hashOf(values as (string | null)[]));
    expect(along).toEqual(readExtraction(await fetchExtraction(redis, jobId)));
    expect(along).toMatchObject({ isErased: true, voiceSendId: 'send-1' });
  });

  it('is none of what is noted of a job that Redis has lost', async () => {
    const { redis } = queue();
    const jobId = newJobId();
    await noteServed(redis, jobId, 'a');
    await noteErased(redis, jobId);
    expect(await confirmVoice(redis, ofSend(jobId))).toBe(false);
    expect(await noteSending(redis, jobId)).toBe('absent');
    expect([
      await queue().queue('extract').getJob(jobId),
      await queue().queue('voice').getJob(jobId),
    ]).toEqual([undefined, undefined]);
    // So it can be submitted again under its id.
    await queue().jobs.submit(TENANT, [{ jobId, payload: payloadOf(TENANT) }]);
    await queue().reaches(jobId, 'queued');
  });

  it('has its times for scripts', async () => {
    const times = (jobId: string) => run('times-of.lua', 'return {timesOf(ARGV[1])}', [], [jobId]);
    const jobId = await queue().submit();
    expect(await times('job_0000000000000000')).toEqual([null, null]);
    expect(await times(jobId)).toEqual([(await jobOf(jobId)).timestamp, null]);
    queue().consume(async (job) => resultOf(job.jobId));
    await queue().reaches(jobId, 'completed');
    const { timestamp, finishedOn } = await jobOf(jobId);
    expect(await times(jobId)).toEqual([timestamp, finishedOn]);
  });
});

describe('the places of the queue', () => {
  it('are as many as BullMQ counts', async () => {
    await taken('a token');
    await queue().submitMany(2);
    await queue().queue('extract').add('plain', {}, { jobId: 'plain' });
    const { prioritized, waiting, active } = await queue().queue('extract').getJobCounts();
    const lengths = await run('queue-places.lua', 'return {lengths()}', QUEUE_PLACES_KEYS);
    expect(lengths).toEqual([2, 1, 1]);
    expect(lengths).toEqual([prioritized, waiting, active]);
  });

  it('move to the front together: of jobs that wait, run, and wait for their next try', async () => {
    const extract = queue().queue('extract');
    const add = (jobId: string, priority: number, delay = 0, data = {}) =>
      extract.add('extract', data, { jobId, priority, delay });
    await add('running', 101);
    await queue().worker('extract').getNextJob('a token');
    await add('second', 103);
    await add('first', 102);
    await add('clipped', 50);
    await add('later', 104, 60_000);
    await add('forward', 105, 0, { tenant: TENANT });
    await bringFirst(queue().redis, []);
    await run('queue-places.lua', 'shiftPriorities(100)', QUEUE_PLACES_KEYS);
    const priorities = async (...ids: string[]) =>
      Promise.all(ids.map(async (id) => (await jobOf(id)).priority));
    expect(await priorities('clipped', 'running', 'first', 'second', 'later', 'forward')).toEqual([
      1, 1, 2, 3, 4, 5,
    ]);
    expect((await extract.getPrioritized()).map(({ id }) => id)).toEqual(['clipped', 'first', 'second']);
    const counts = await extract.getCountsPerPriority([1, 2, 3]);
    expect(counts).toEqual({ 1: 1, 2: 1, 3: 1 });
  });
});

describe('an attempt', () => {
  it('is fenced by the lock that BullMQ gave its worker', async () => {
    const { redis } = queue();
    const jobId = await taken('ours');
    expect(await startAttempt(redis, { jobId, token: 'theirs', tenant: TENANT })).toMatchObject({
      state: 'lost',
    });
    expect(await startAttempt(redis, { jobId, token: 'ours', tenant: TENANT })).toEqual({
      state: 'held',
      lostStarts: 0,
      unsureStarts: 0,
    });
    const state = { progress: 7, currentStep: 'extracting_audio', inputFile: null } as const;
    const holder = { jobId, lockMs: 60_000, working: 'worker' };
    expect(await reportProgress(redis, { ...holder, token: 'theirs' }, state)).toBe('lost');
    expect(await reportProgress(redis, { ...holder, token: 'ours' }, state)).toBe('held');
    expect((await jobOf(jobId)).progress).toEqual(state);
    // The next one is told that this one died in the middle of its work.
    await redis.zadd(DEAD_WORKERS_KEY, Date.now(), 'worker');
    expect(await startAttempt(redis, { jobId, token: 'ours', tenant: TENANT })).toEqual({
      state: 'held',
      lostStarts: 1,
      unsureStarts: 0,
    });
    await noteServed(redis, jobId, 'b');
    await noteServed(redis, jobId);
    await noteServed(redis, jobId, 'c');
    expect(readExtraction(await fetchExtraction(redis, jobId))?.attemptTokens).toEqual(['b', 'c']);
    await (await jobOf(jobId)).moveToCompleted('done', 'ours', false);
  });

  it.each([
    ['of whom nobody knows yet', async () => undefined, { lostStarts: 0, unsureStarts: 1 }],
    [
      'that was found dead',
      (redis: Redis) => redis.zadd(DEAD_WORKERS_KEY, 1, 'worker'),
      { lostStarts: 1, unsureStarts: 0 },
    ],
    [
      'that is heard of again',
      (redis: Redis) => redis.zadd(WORKER_BEATS_KEY, Date.now() + 60_000, 'worker'),
      { lostStarts: 0, unsureStarts: 0 },
    ],
    [
      'that has ended in order',
      (redis: Redis) => redis.zrem(WORKER_BEATS_KEY, 'worker'),
      { lostStarts: 0, unsureStarts: 0 },
    ],
  ])('that was left in the middle by a worker %s', async (_, becomes, expected) => {
    const { redis } = queue();
    const jobId = await taken('ours');
    await redis.zadd(WORKER_BEATS_KEY, Date.now() - 1000, 'worker');
    const state = { progress: 7, currentStep: 'extracting_audio', inputFile: null } as const;
    await reportProgress(redis, { jobId, token: 'ours', lockMs: 60_000, working: 'worker' }, state);
    const start = () => startAttempt(redis, { jobId, token: 'ours', tenant: TENANT });
    expect(await start()).toEqual({ state: 'held', lostStarts: 0, unsureStarts: 1 });
    await becomes(redis);
    expect(await start()).toEqual({ state: 'held', ...expected });
  });

  it('keeps the lock for as long as it says', async () => {
    const { redis } = queue();
    const jobId = await taken('ours');
    const state = { progress: 7, currentStep: 'extracting_audio', inputFile: null } as const;
    await reportProgress(redis, { jobId, token: 'ours', lockMs: 900_000, working: 'worker' }, state);
    expect(await redis.pttl(`${recordKey('extract', jobId)}:lock`)).toBeGreaterThan(800_000);
  });
});

it('an attempt at a job of a paused key does not begin, unless the job was cancelled', async () => {
  const { redis } = queue();
  const jobId = await taken('ours');
  const start = () => startAttempt(redis, { jobId, token: 'ours', tenant: TENANT });
  await redis.hset(apiKeyKey(TENANT), PAUSED_FIELD, 1);
  expect(await start()).toMatchObject({ state: 'paused' });
  await markCancelled(redis, jobId, 'another');
  expect(await start()).toMatchObject({ state: 'cancelled' });
});

describe('cancelling', () => {
  it.each([
    ['with a priority', { priority: 5 }],
    ['without one', {}],
    ['for its next try', { delay: 60_000 }],
  ])('takes up a job that waits %s, so that BullMQ lets it fail', async (_, options) => {
    const { redis } = queue();
    const { id: jobId = '' } = await queue()
      .queue('extract')
      .add('extract', {}, { jobId: 'one', ...options });
    expect(await markCancelled(redis, jobId, 'ours')).toBe('claimed');
    const job = await jobOf(jobId);
    expect(await job.getState()).toBe('active');
    await job.moveToFailed(new UnrecoverableError('cancelled'), 'ours', false);
    expect(await job.getState()).toBe('failed');
    expect(readExtraction(await fetchExtraction(redis, jobId))?.isCancelled).toBe(true);
    expect(await markCancelled(redis, jobId, 'ours')).toBe('finished');
  });

  it('tells the worker of a job that runs', async () => {
    const { redis } = queue();
    const jobId = await taken('ours');
    expect(await markCancelled(redis, jobId, 'another')).toBe('notified');
    expect(await startAttempt(redis, { jobId, token: 'ours', tenant: TENANT })).toMatchObject({
      state: 'cancelled',
    });
  });
});

it('the first job of a key without its share is taken before all others, and comes back to its place unstarted', async () => {
  const { redis } = queue();
  const extract = queue().queue('extract');
  const add = (jobId: string, tenant: string, priority: number) =>
    extract.add('extract', { version: 1, tenant, note: '"tenant":"cccccccc"' }, { jobId, priority });
  await add('first', 'aaaaaaaa', 1);
  await add('last', 'bbbbbbbb', 9);
  await add('behind', 'bbbbbbbb', 9);
  expect(await bringFirst(redis, ['aaaaaaaa', 'bbbbbbbb'])).toBe(false);
  await redis.hset(apiKeyKey('bbbbbbbb'), PAUSED_FIELD, 1);
  expect(await bringFirst(redis, ['aaaaaaaa'])).toBe(false);
  await redis.del(apiKeyKey('bbbbbbbb'));
  // Also one that stands in front already.
  for (let nth = 0; nth < 2; nth++) expect(await bringFirst(redis, ['aaaaaaaa'])).toBe(true);
  const job = await queue().worker('extract').getNextJob('ours', { block: false });
  if (job === undefined) throw new Error('no job was taken');
  expect(job).toMatchObject({ id: 'last', priority: 9 });
  await returnUnstarted(redis, 'extract', job, 'ours');
  expect((await extract.getPrioritized()).map(({ id }) => id)).toEqual(['first', 'last', 'behind']);
  expect(await extract.getWaitingCount()).toBe(0);
  const back = await extract.getJob('last');
  expect([back?.processedOn, back?.attemptsMade]).toEqual([undefined, 0]);
});

it('a job that comes back with its priority is taken at once by a worker that is woken', async () => {
  const jobId = await taken('ours');
  const got = Promise.withResolvers<string>();
  queue().consume(async (job) => {
    got.resolve(job.jobId);
    return resultOf(job.jobId);
  });
  // It blocks by now: the queue was empty.
  await expect.poll(async () => String(await queue().redis.call('CLIENT', 'LIST'))).toContain('cmd=bzpopmin');
  await (await jobOf(jobId)).moveToWait('ours');
  const woken = performance.now();
  await wakeWorker(queue().redis);
  expect(await got.promise).toBe(jobId);
  expect(performance.now() - woken).toBeLessThan(4000);
});

it('ended jobs are found by when BullMQ says that they ended', async () => {
  const ids = await queue().submitMany(3, TENANT);
  queue().consume(async (job) => resultOf(job.jobId));
  for (const id of ids) await queue().reaches(id, 'completed');
  const ended = await Promise.all(
    ids.map(async (jobId) => ({ jobId, endedAtMs: (await jobOf(jobId)).finishedOn })),
  );
  const page = { from: '-inf', untilMs: Date.now(), most: 10 };
  const found = await endedBetween(queue().redis, 'completed', page);
  expect(found).toHaveLength(3);
  expect(found).toEqual(expect.arrayContaining(ended));
  const last = found.at(-1)?.endedAtMs ?? 0;
  expect(await endedBetween(queue().redis, 'completed', { ...page, from: `(${last}` })).toEqual([]);
  expect(await endedBetween(queue().redis, 'failed', page)).toEqual([]);
});
