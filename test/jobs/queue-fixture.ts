/** A job queue on a Redis of the file's own, which is empty before every test, and whatever a test opens on it closed afterwards. */

import { randomBytes } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import { isRedisAway } from 'soundpost-kit/observe/away';
import { createLogger } from 'soundpost-kit/observe/logger';
import { Probes } from 'soundpost-kit/observe/probes';
import { closeRedis, connectRedis, pingRedis, type Redis } from 'soundpost-kit/redis/connection';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { sealDestinations } from '../../src/jobs/destinations.ts';
import {
  consumeExtractions,
  type ExtractionConsumerOptions,
  type ExtractionJob,
} from '../../src/jobs/extraction-consumer.ts';
import { JobQueue, type NewJob } from '../../src/jobs/job-queue.ts';
import { findJobRecord, type JobRecord } from '../../src/jobs/job-record.ts';
import { type QueueName, queueNames } from '../../src/jobs/names.ts';
import { closeQueues, openQueues } from '../../src/jobs/open-queue.ts';
import { ExtractPayload, type ExtractResult, WebhookPayload } from '../../src/jobs/payloads.ts';
import type { SubmissionLimits } from '../../src/jobs/reservation.ts';
import { WorkerRegistry } from '../../src/jobs/worker-registry.ts';

export const logger = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');

export const TENANT = 'tenant01';

/** Default: those of production. */
type QueueTimes = Partial<Pick<ConstructorParameters<typeof JobQueue>[0], 'unconfirmedMs'>>;

const LIMITS: SubmissionLimits = {
  submitPerMinute: 100_000,
  unfinishedPerTenant: 100_000,
  queueLimit: 100_000,
};

export function newJobId(): string {
  return `job_${randomBytes(8).toString('hex')}`;
}

/** @param options as in a request */
export function payloadOf(tenant: string, options: Record<string, unknown> = {}): ExtractPayload {
  return ExtractPayload.parse({
    version: 1,
    tenant,
    source: { type: 'url', url: 'https://media.example/talk.mp4' },
    output: { format: 'mp3' },
    options: { priority: 'normal', ...options },
    batchId: null,
    retryOf: null,
  });
}

const sealer = new Sealer(Buffer.alloc(32));

/** Of a job whose file is to be put somewhere. */
export function destinedPayload(jobId: string, options: Record<string, unknown> = {}): ExtractPayload {
  const payload = payloadOf(TENANT, options);
  const destination = { url: 'https://bucket.example/talk.mp3?signature=abc' };
  return { ...payload, ...sealDestinations(sealer, jobId, { output: payload.output, destination }) };
}

/** Steps that go on until they are told to end. */
export async function aborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted)
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  throw signal.reason;
}

export class TestQueue {
  readonly server: TestRedis;
  /** For looking at what stands in Redis. */
  readonly redis: Redis;
  readonly jobs: JobQueue;
  /** For asking again and again: without the deadline of a request, which a busy machine may miss. */
  readonly #patient: Redis;
  readonly #closing: (() => Promise<unknown>)[] = [];

  constructor(server: TestRedis, limits: Partial<SubmissionLimits>, times: QueueTimes = {}) {
    this.server = server;
    this.redis = this.connect('request');
    this.#patient = this.connect('worker');
    this.jobs = this.jobQueue(limits, logger, times);
  }

  /** @param deadlineMs on a busy machine Redis may be late by more than a request waits in production */
  connect(
    role: Parameters<typeof connectRedis>[0]['role'],
    url = this.server.url,
    deadlineMs = 30_000,
  ): Redis {
    const redis = connectRedis({ url, role, deadlineMs, logger });
    this.onClose(() => closeRedis(redis));
    return redis;
  }

  jobQueue(limits: Partial<SubmissionLimits>, told = logger, times: QueueTimes = {}): JobQueue {
    const jobs = new JobQueue({
      holdUpload: async () => true,
      redis: this.redis,
      limits: { ...LIMITS, ...limits },
      recordSeconds: 3600,
      ...times,
      logger: told,
    });
    this.onClose(() => jobs.close());
    return jobs;
  }

  /** BullMQ's own view of a queue. */
  queue(name: QueueName): Queue {
    const queue = new Queue(queueNames[name], { connection: this.redis, prefix: KEY_PREFIX });
    this.onClose(() => queue.close());
    return queue;
  }

  /** The webhooks that wait, by event, once there are so many; they are added side by side, in no order. */
  async toldWebhook(count: number): Promise<Partial<Record<WebhookPayload['event'], WebhookPayload>>> {
    const jobs = await until(`the webhook is told ${count} events`, async () => {
      const waiting = await this.queue('webhook').getJobs();
      return waiting.length >= count && waiting;
    });
    const payloads = jobs.map(({ data }) => WebhookPayload.parse(data));
    return Object.fromEntries(payloads.map((payload) => [payload.event, payload]));
  }

  /** A worker of BullMQ's that takes a job when it is asked to, by `getNextJob`. */
  worker(name: QueueName): Worker {
    const worker = new Worker(queueNames[name], null, {
      connection: this.connect('worker'),
      prefix: KEY_PREFIX,
      lockDuration: 60_000,
    });
    this.onClose(() => worker.close());
    return worker;
  }

  /** Submits one job and answers its id. */
  async submit(tenant = TENANT, options: Record<string, unknown> = {}): Promise<string> {
    const [jobId = ''] = await this.submitMany(1, tenant, options);
    return jobId;
  }

  /** Submits jobs one request at a time and answers their ids. */
  async submitMany(count: number, tenant = TENANT, options: Record<string, unknown> = {}): Promise<string[]> {
    const jobs = Array.from({ length: count }, () => ({
      jobId: newJobId(),
      payload: payloadOf(tenant, options),
    }));
    for (const job of jobs) await this.take(tenant, job);
    return jobs.map(({ jobId }) => jobId);
  }

  /** Submits one job. What a busy machine did not take in time was not accepted, and is submitted again under its id, as clients do. */
  async take(tenant: string, job: NewJob): Promise<void> {
    let repeated = false;
    const { outcome } = await until('the job is answered', () => {
      const answer = this.jobs.submit(tenant, [job], { repeated });
      repeated = true;
      return answer.catch((error: Error) => {
        if (!isRedisAway(error)) throw error;
        return undefined;
      });
    });
    if (outcome !== 'reserved') throw new Error(`the job was not taken: ${outcome}`);
    // A job is accepted also where Redis is slow to say that it is confirmed: until then nobody reads it.
    await until('the job is confirmed', () => findJobRecord(this.#patient, job.jobId));
  }

  /** Resolves once a submission has its deadline for itself, and not for a connection. */
  async ready(): Promise<void> {
    await until('Redis answers', () =>
      pingRedis(this.redis).then(
        () => true,
        () => false,
      ),
    );
  }

  /** A worker whose steps are `run`; each job has its turn at once, unless `takesTurns` says that they see to it. */
  consume(
    run: (job: ExtractionJob) => Promise<ExtractResult>,
    { takesTurns = false, ...options }: Partial<ExtractionConsumerOptions> & { takesTurns?: boolean } = {},
  ) {
    const registry = this.registry();
    const consumer = consumeExtractions({
      redis: this.connect('worker'),
      registry,
      concurrency: 1,
      lockSeconds: 30,
      logger,
      queue: this.queue('extract'),
      async run(job) {
        if (!takesTurns) await job.takeTurn();
        return run(job);
      },
      ...options,
    });
    this.onClose(() => consumer.close(0));
    return consumer;
  }

  /** A disk for workers, as full as the test has it. */
  disk(): { readonly probes: Probes; becomes(state: 'ok' | 'low'): Promise<unknown> } {
    const probes = new Probes(logger);
    let now: 'ok' | 'low' = 'ok';
    probes.add('disk', { ask: () => now });
    this.onClose(() => probes.close('disk'));
    return {
      probes,
      becomes(state) {
        now = state;
        return probes.ask('disk');
      },
    };
  }

  /** Of a worker process. */
  registry(home?: string): WorkerRegistry {
    const queues = openQueues(this.redis, logger);
    const registry = new WorkerRegistry({ redis: this.redis, queues, home, logger });
    this.onClose(() => closeQueues(queues));
    this.onClose(() => registry.close());
    return registry;
  }

  /** The job's record once it is in one of the states. */
  async reaches(jobId: string, ...states: JobRecord['status'][]): Promise<JobRecord> {
    return until(`${jobId} is ${states.join(' or ')}`, async () => {
      const record = await findJobRecord(this.#patient, jobId);
      return record !== undefined && states.includes(record.status) && record;
    });
  }

  onClose(close: () => Promise<unknown>): void {
    this.#closing.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closing.reverse()) {
      await close();
    }
  }
}

/** Call it at the top of a file or a `describe`; the test gets its queue by calling what it answers. */
export function useQueue(limits: Partial<SubmissionLimits> = {}, times: QueueTimes = {}): () => TestQueue {
  let queue: TestQueue | undefined;
  let server: TestRedis;
  beforeAll(async () => {
    server = await startTestRedis();
  });
  beforeEach(async () => {
    queue = new TestQueue(server, limits, times);
    await queue.ready();
    await queue.redis.flushall();
  });
  afterEach(async () => {
    await queue?.close();
    queue = undefined;
  });
  afterAll(() => server.close());
  return () => {
    if (queue === undefined) {
      throw new Error('there is a queue only while a test runs');
    }
    return queue;
  };
}
