/**
 * Two thousand jobs of the last days, written as BullMQ keeps them: running so many would take
 * hours.
 */
import { Redis } from 'ioredis';
import { createLogger } from 'soundpost-kit/observe/logger';
import { ownKey } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import { findJobRecord } from '../../src/jobs/job-record.ts';
import type { Hook, TestService } from '../api/api-fixture.ts';
import { resultOf } from '../jobs/job-result.ts';

export const KEPT = 2000;
/** Of yesterday, and those of them from one host. */
export const FAILED_YESTERDAY = 60;
export const OF_ONE_HOST = 40;
/** The newest, all completed. */
const TODAY = 60;
const EACH_DAY = 360;
const QUEUE = '{soundpost}:extract';
const MINUTE_MS = 60_000;
const AT_ONCE = 500;
const ENDPOINTS = 40;
const FAILED_DELIVERIES = 500;

const idOf = (nth: number): string => `job_${nth.toString(16).padStart(16, '0')}`;

interface Kept {
  readonly jobId: string;
  readonly atMs: number;
  readonly url: string;
  readonly name: string;
  /** Undefined: it completed. */
  readonly failure?: string;
}

/** The newest are of this hour, the others lie before noon of their days. */
function* keptJobs(port: number, first: number): Generator<Kept> {
  const now = Date.now();
  const noon = (daysAgo: number): number =>
    new Date(now).setHours(12, 0, 0, 0) - daysAgo * 24 * 60 * MINUTE_MS;
  for (let nth = 0; nth < KEPT; nth += 1) {
    const jobId = idOf(first + KEPT - nth);
    const isToday = nth < TODAY;
    const daysAgo = isToday ? 0 : 1 + Math.floor((nth - TODAY) / EACH_DAY);
    const ofDay = isToday ? nth : (nth - TODAY) % EACH_DAY;
    const atMs = isToday ? now - nth * 1000 : noon(daysAgo) - ofDay * MINUTE_MS;
    const hasFailed = daysAgo === 1 && ofDay < FAILED_YESTERDAY;
    const host = hasFailed && ofDay >= OF_ONE_HOST ? 'media.example' : 'cdn.example';
    const name = nth === 1500 ? 'quarterly-review.mp4' : `talk-${nth}.mp4`;
    const status = host === 'cdn.example' ? 404 : 503;
    yield {
      ...{ jobId, atMs, name, url: `http://${host}:${port}/${name}` },
      ...(hasFailed ? { failure: `HTTP ${status} from ${host}` } : {}),
    };
  }
}

interface Keeping {
  readonly key: string;
  /** Jobs of another key begin at another number. */
  readonly first?: number;
  /** Where the newest of them tell of their end. */
  readonly hooks?: readonly Hook[];
}

export async function keepJobs(service: TestService, { key, first = 0, hooks = [] }: Keeping): Promise<void> {
  const redis = new Redis(service.redis.url.slice('unix://'.length));
  const tenant = key.split('_')[1] ?? '';
  const jobs = [...keptJobs(service.outside.port, first)];
  for (let from = 0; from < jobs.length; from += AT_ONCE) {
    const writing = redis.pipeline();
    for (const [index, { jobId, atMs, url, name, failure }] of jobs.slice(from, from + AT_ONCE).entries()) {
      const nth = from + index;
      const webhook = nth < FAILED_DELIVERIES ? hooks[nth % hooks.length]?.url : undefined;
      const result = resultOf(jobId);
      const outputFile = {
        ...result.outputFile,
        filename: name.replace('mp4', 'mp3'),
        size: 4_800_000,
        duration: 300,
      };
      const details = {
        code: 'DOWNLOAD_FAILED',
        message: 'The file could not be downloaded.',
        details: failure,
      };
      writing.hset(`${QUEUE}:${jobId}`, {
        ...{ name: 'extract', timestamp: atMs, opts: '{}', processedOn: atMs, finishedOn: atMs },
        ...{ spConfirmed: '1', spTenant: tenant, spNames: JSON.stringify([url, '']) },
        data: JSON.stringify({
          ...{ version: 1, tenant, source: { type: 'url', url }, output: { format: 'mp3' } },
          ...{ options: { priority: 'normal', webhook }, batchId: null, retryOf: null },
        }),
        ...(failure === undefined
          ? { returnvalue: JSON.stringify({ ...result, outputFile, outputFiles: [outputFile] }) }
          : { failedReason: JSON.stringify(details) }),
      });
      writing.zadd(ownKey('jobs', tenant), atMs, jobId);
      const state = failure === undefined ? 'completed' : 'failed';
      writing.zadd(`${QUEUE}:${state}`, atMs, jobId);
      // Who files what has ended looks no further back than the last end of another job.
      writing.zadd(ownKey(state, tenant), atMs, jobId);
    }
    await writing.exec();
  }
  redis.disconnect();
}

/**
 * 500 deliveries of kept jobs to 40 endpoints that all answer 503, each given up. The service makes
 * one attempt (WEBHOOK_SCHEDULE_SECONDS=0).
 * @param hooks of {@link failingHooks}, and of the kept jobs
 */
export async function failDeliveries(service: TestService, hooks: readonly Hook[], first = 0): Promise<void> {
  const redis = new Redis(service.redis.url.slice('unix://'.length), { maxRetriesPerRequest: null });
  const followUps = new JobFollowUps({
    ...{ redis, webhookTries: 1, recordSeconds: 7 * 24 * 3600, logger: createLogger('silent') },
  });
  for (let nth = 0; nth < FAILED_DELIVERIES; nth += 1) {
    const job = await findJobRecord(redis, idOf(first + KEPT - nth));
    if (job === undefined) throw new Error('the job is not kept');
    await followUps.addWebhook(job, { deliveryId: `dlv_${nth}`, event: 'job.completed' });
  }
  await until(
    'all have been tried',
    () => hooks.reduce((sum, { received }) => sum + received.length, 0) >= FAILED_DELIVERIES,
    120_000,
  );
  await followUps.close();
  redis.disconnect();
}

/** @returns receivers that answer 503 */
export const failingHooks = (service: TestService): Hook[] =>
  Array.from({ length: ENDPOINTS }, (_, nth) =>
    service.outside.hook(`failing-${nth}`, () => ({ status: 503 })),
  );
