/**
 * What a job costs Redis, from its submission to its webhook and to what is kept of it: memory, processor time, and connections of the processes. The job lasts as long as 10 min of video
 * do, reports its progress and is asked for, but nothing is encoded: that many would take hours.
 *
 * And what lists cost among many jobs.
 *
 *     node bench/kept-jobs.ts [--jobs 1000] [--seconds 8] [--questions 10] [--runs 5] [--kept 100000] [--unfinished 10000]
 */
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis } from 'soundpost-kit/redis/connection';
import { Client } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';
import { consumeCompletions } from '../src/followups/completion.ts';
import { JobFollowUps } from '../src/followups/job-followups.ts';
import { scheduled } from '../src/followups/kind.ts';
import { FollowUpWorker } from '../src/followups/worker.ts';
import { consumeExtractions, type ExtractionJob } from '../src/jobs/extraction-consumer.ts';
import { openQueue } from '../src/jobs/open-queue.ts';
import { WebhookPayload } from '../src/jobs/payloads.ts';
import { resultOf } from '../test/jobs/job-result.ts';
import { typicalAllow, typicalJob } from './measuring/api.ts';
import { askedFor, printRow } from './measuring/comparison.ts';
import { openHome } from './measuring/home.ts';
import { measureLists } from './measuring/kept-lists.ts';

const AT_A_TIME = 250;
const REPORTS_PER_SECOND = 10;
/** Requests of clients at a time. */
const TOGETHER = 20;
const SETTLE_MS = 1000;
const WEEK_SECONDS = 7 * 86_400;

const { jobs, seconds, questions, runs, kept, unfinished } = askedFor({
  ...{ jobs: 1000, seconds: 8, questions: 10, runs: 5 },
  ...{ kept: 100_000, unfinished: 10_000 },
});
const logger = createLogger('warn');
const request = { ...typicalJob, options: { webhook: 'http://127.0.0.1:9/hook' } };

const bytes: number[] = [];
const milliseconds: number[] = [];
const connections = { 'API process': [] as number[], worker: [] as number[], gateway: [] as number[] };

for (let nth = 0; nth < runs; nth += 1) await measure();

async function measure(): Promise<void> {
  const { home, redisUrl, remove } = await openHome({ LOG_LEVEL: 'warn', ...typicalAllow });
  const redis = new Redis(redisUrl.slice('unix://'.length));
  const count = async (): Promise<number> =>
    Number(/connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1]);
  const none = await count();
  const api = home.start('api');
  const url = await api.says(/^API\s+(http\S+)/m);
  const withApi = await count();
  const worker = home.start('worker');
  await worker.says(/^Worker/m);
  await wait(SETTLE_MS);
  const withWorker = await count();
  const gateway = home.start('gateway');
  await gateway.says(/^Gateway/m);
  await wait(SETTLE_MS);
  connections['API process'].push(withApi - none);
  connections.worker.push(withWorker - withApi);
  connections.gateway.push((await count()) - withWorker);
  for (const { signal, exited } of [worker, gateway]) {
    signal('SIGTERM');
    await exited;
  }
  const told = new Set<string>();
  const consumer = await openConsumer(redisUrl, told);
  const client = new Client(url, home.key);
  // Scripts are loaded and structures are there.
  await Promise.all(Array.from({ length: 20 }, () => client.submit(request)));
  await until('the first ones are done', () => told.size === 20, 60_000);
  told.clear();
  const before = await usageOf(redis);
  const ids: string[] = [];
  while (ids.length < jobs) {
    const together = Math.min(TOGETHER, jobs - ids.length);
    ids.push(...(await Promise.all(Array.from({ length: together }, () => client.submit(request)))));
  }
  for (let question = 0; question < questions; question += 1) {
    for (let from = 0; from < ids.length; from += TOGETHER) {
      // A busy machine may let one of them be answered 503: Redis was asked all the same.
      await Promise.all(ids.slice(from, from + TOGETHER).map((id) => client.call('GET', `/v1/status/${id}`)));
    }
  }
  await until('all are told of', () => told.size === jobs, 600_000);
  await wait(SETTLE_MS);
  const after = await usageOf(redis);
  bytes.push((after.bytes - before.bytes) / jobs);
  milliseconds.push(((after.seconds - before.seconds) * 1000) / jobs);
  await consumer();
  api.signal('SIGTERM');
  await api.exited;
  redis.disconnect();
  await remove();
}

/** A worker that encodes nothing and tells nobody. @returns what ends it */
async function openConsumer(redisUrl: string, told: Set<string>): Promise<() => Promise<void>> {
  const redis = connectRedis({ url: redisUrl, role: 'worker', logger });
  const followUps = new JobFollowUps({ redis, recordSeconds: WEEK_SECONDS, webhookTries: 10, logger });
  const shared = { redis, lockSeconds: 30, logger };
  const asking = connectRedis({ url: redisUrl, role: 'request', logger });
  const extractions = consumeExtractions({
    ...shared,
    queue: openQueue('extract', asking, logger),
    concurrency: AT_A_TIME,
    run: encodeNothing,
  });
  const completions = consumeCompletions({ ...shared, followUps });
  const webhooks = await FollowUpWorker.start({
    ...shared,
    queue: followUps.queues.webhook,
    concurrency: 16,
    isAlone: false,
    kindOf: () => ({
      payload: WebhookPayload,
      prepare: async ({ jobId }) => ({ ready: told.add(jobId) }),
      try: async () => ({ outcome: 'done', result: { status: 204 }, httpStatus: 204, latencyMs: 1 }),
      schedule: scheduled([0]),
      logSeconds: WEEK_SECONDS,
    }),
  });
  return async () => {
    await Promise.all([extractions.close(0), completions.close(0), webhooks.close(0)]);
    await followUps.close();
    await Promise.all([closeRedis(redis), closeRedis(asking)]);
  };
}

async function encodeNothing({ jobId, report }: ExtractionJob) {
  const result = resultOf(jobId);
  for (let nth = 0; nth < seconds * REPORTS_PER_SECOND; nth += 1) {
    const progress = Math.floor((nth * 99) / (seconds * REPORTS_PER_SECOND));
    report({ progress, currentStep: 'extracting_audio', inputFile: result.inputFile });
    await wait(1000 / REPORTS_PER_SECOND);
  }
  return result;
}

async function usageOf(redis: Redis): Promise<{ bytes: number; seconds: number }> {
  const info = `${await redis.info('memory')}${await redis.info('cpu')}`;
  const number = (name: string): number => Number(new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]);
  return {
    bytes: number('used_memory'),
    seconds: number('used_cpu_sys') + number('used_cpu_user'),
  };
}

const what = `job of ${seconds} s, polled ${questions} times, with a webhook`;
printRow({
  what: `Redis memory per finished ${what}`,
  against: null,
  unit: 'bytes',
  ours: bytes,
  theirs: [],
  reach: null,
});
printRow({
  what: `Redis processor time per ${what}`,
  against: null,
  unit: 'ms',
  ours: milliseconds,
  theirs: [],
  reach: null,
});
for (const [name, ours] of Object.entries(connections)) {
  printRow({
    what: `Redis connections per ${name}`,
    against: null,
    unit: '',
    ours,
    theirs: [],
    reach: null,
  });
}
await measureLists({ kept, unfinished }, runs);
