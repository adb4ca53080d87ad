/**
 * What a long queue costs whoever comes next: one API with so many jobs queued against one with none, each with a Redis of its own (append-only file, synced every
 * second). Accepting: through HTTP at a modest rate. Dispatch: from when a busy worker becomes free to when it has the job that was accepted meanwhile. The jobs that
 * wait are one key's, the new one is another's, and so is the next (docs/decisions/0004-fairness.md).
 *
 *     node bench/long-queue.ts [--jobs 1000000] [--runs 5] [--requests 500] [--probes 100]
 */
import { randomBytes } from 'node:crypto';
import { createLogger } from 'soundpost-kit/observe/logger';
import { connectRedis } from 'soundpost-kit/redis/connection';
import { consumeExtractions } from '../src/jobs/extraction-consumer.ts';
import { JobQueue } from '../src/jobs/job-queue.ts';
import { openQueue } from '../src/jobs/open-queue.ts';
import { resultOf } from '../test/jobs/job-result.ts';
import { type ApiBench, load, openApiBench, typicalAllow, typicalJob } from './measuring/api.ts';
import { askedFor, grouped, inTurns, median, printRow } from './measuring/comparison.ts';
import { typicalPayload } from './measuring/typical-payload.ts';

const PER_SECOND = 100;
const CHUNK = 1000;
const FILLER = 'benches1';
const MANY = 1_000_000_000;

const { jobs, runs, requests, probes } = askedFor({ jobs: 1_000_000, runs: 5, requests: 500, probes: 100 });
const logger = createLogger('warn');
const ends: (() => Promise<void>)[] = [];

const newJobs = (count: number) =>
  Array.from({ length: count }, () => ({
    jobId: `job_${randomBytes(8).toString('hex')}`,
    payload: { ...typicalPayload, tenant: FILLER },
  }));

/** The producers' side as the API has it, but patient. */
function queueOf(bench: ApiBench): JobQueue {
  const redis = connectRedis({ url: `unix://${bench.redisSocket}`, role: 'worker', logger });
  const limits = { submitPerMinute: MANY, unfinishedPerTenant: MANY, queueLimit: MANY };
  const queue = new JobQueue({
    redis,
    holdUpload: async () => true,
    limits,
    recordSeconds: 7 * 86_400,
    logger,
  });
  ends.push(async () => {
    await queue.close();
    redis.disconnect();
  });
  return queue;
}

async function memoryOf({ redis }: ApiBench): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

/** @returns Redis' bytes for each job */
async function fill(bench: ApiBench, queue: JobQueue): Promise<number> {
  const before = await memoryOf(bench);
  const begunAt = performance.now();
  for (let added = 0; added < jobs; added += CHUNK) {
    await queue.submit(FILLER, newJobs(Math.min(CHUNK, jobs - added)));
  }
  process.stderr.write(`filled in ${Math.round((performance.now() - begunAt) / 1000)} s\n`);
  return ((await memoryOf(bench)) - before) / jobs;
}

/** p50 of accepting, ms. */
function acceptance(bench: ApiBench, tails: number[], empty: boolean): () => Promise<number> {
  const request = bench.request('POST', '/v1/extract', typicalJob);
  return async () => {
    if (empty) await bench.empty();
    const { p50, p99 } = await load({
      port: bench.port,
      requests: [request],
      status: 202,
      connections: 16,
      seconds: requests / PER_SECOND,
      perSecond: PER_SECOND,
    });
    tails.push(p99);
    return p50;
  };
}

/** Median of the dispatches, ms. */
async function dispatch(bench: ApiBench, queue: JobQueue, empty: boolean): Promise<() => Promise<number>> {
  const key = await bench.newKey();
  let held = Promise.withResolvers<() => void>();
  let arrived = Promise.withResolvers<number>();
  const redis = connectRedis({ url: `unix://${bench.redisSocket}`, role: 'worker', logger });
  const asking = connectRedis({ url: `unix://${bench.redisSocket}`, role: 'request', logger });
  const consumer = consumeExtractions({
    redis,
    concurrency: 1,
    lockSeconds: 30,
    logger,
    queue: openQueue('extract', asking, logger),
    async run({ jobId, payload, signal, takeTurn }) {
      await takeTurn();
      if (payload.tenant === FILLER) {
        await new Promise<void>((free) => {
          held.resolve(free);
          signal.addEventListener('abort', () => free(), { once: true });
        });
      } else {
        arrived.resolve(performance.now());
      }
      return resultOf(jobId);
    },
  });
  ends.push(async () => {
    await consumer.close(0);
    redis.disconnect();
    asking.disconnect();
  });
  const probe = async (): Promise<number> => {
    if (empty) await queue.submit(FILLER, newJobs(1));
    const free = await held.promise;
    held = Promise.withResolvers();
    arrived = Promise.withResolvers();
    const { status } = await fetch(`http://127.0.0.1:${bench.port}/v1/extract`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify(typicalJob),
    });
    if (status !== 202) throw new Error(`the job was not taken: ${status}`);
    const freeAt = performance.now();
    free();
    return (await arrived.promise) - freeAt;
  };
  return async () => {
    const took: number[] = [];
    for (let nth = 0; nth < probes; nth += 1) took.push(await probe());
    return median(took);
  };
}

const full = await openApiBench(typicalAllow);
const none = await openApiBench(typicalAllow);
const fullQueue = queueOf(full);
const noneQueue = queueOf(none);
const bytes = await fill(full, fullQueue);

const tails = { full: [] as number[], none: [] as number[] };
printRow({
  what: `accepting at ${PER_SECOND}/s with ${grouped(jobs)} jobs queued, p50`,
  against: 'with none queued',
  unit: 'ms',
  ...(await inTurns(runs, acceptance(full, tails.full, false), acceptance(none, tails.none, true))),
  reach: { atMost: 1.2 },
  remarks: [
    { what: 'p99', value: median(tails.full), unit: 'ms' },
    { what: 'p99 with none queued', value: median(tails.none), unit: 'ms' },
    { what: 'Redis', value: bytes, unit: 'bytes a job' },
  ],
});
await none.empty();
printRow({
  what: `time until a free worker has a job of another key, with ${grouped(jobs)} jobs queued`,
  against: 'with none queued',
  unit: 'ms',
  ...(await inTurns(runs, await dispatch(full, fullQueue, false), await dispatch(none, noneQueue, true))),
  reach: { atMost: 1.2 },
});
for (const end of ends.reverse()) await end();
await Promise.all([full.close(), none.close()]);
