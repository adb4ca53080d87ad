/** What is told to others about a job: once, on its schedule, whatever breaks in between. */
import { setTimeout as wait } from 'node:timers/promises';
import { ServiceError } from 'soundpost-contract/errors';
import { subscribe } from 'soundpost-kit/redis/subscription';
import { UrlSigner } from 'soundpost-kit/signing/signatures';
import { currentRun } from 'soundpost-testing/by-run';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { consumeCompletions } from '../../src/followups/completion.ts';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import type { Tried } from '../../src/followups/kind.ts';
import { voiceKind } from '../../src/followups/kinds/voice.ts';
import { jobWebhookKind } from '../../src/followups/kinds/webhook.ts';
import { readVoiceState } from '../../src/followups/state/voice.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { findJobRecord } from '../../src/jobs/job-record.ts';
import { CHANGE_CHANNEL, completionId, voiceId, webhookId } from '../../src/jobs/names.ts';
import { type VoiceOutcome, type VoicePayload, WebhookPayload } from '../../src/jobs/payloads.ts';
import { startRedisProxy } from '../gateway/redis-proxy.ts';
import { queueKey } from './bullmq-keys.ts';
import { resultOf } from './job-result.ts';
import { aborted, logger, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();
const HOOK = { webhook: 'https://client.example/hook' };
const VOICE = { voiceMessage: { instance: 'main', number: '12025550101' } };
const SENT = { status: 'sent', key: null, messageStatus: null, error: null } as const;
const done = { outcome: 'done', result: SENT } as const;

interface Answer {
  readonly status: number;
  readonly retryAfterSeconds?: number;
}

interface Handlers {
  /** A receiver of webhooks: what it answers. */
  readonly webhook: (payload: WebhookPayload) => Promise<Answer>;
  readonly voice: (payload: VoicePayload, signal: AbortSignal) => Promise<Tried<VoiceOutcome>>;
}

function followUps(webhookTries = 1, role: 'request' | 'worker' = 'request', url?: string): JobFollowUps {
  const redis = queue().connect(role, url);
  const opened = new JobFollowUps({ redis, webhookTries, recordSeconds: 3600, logger });
  queue().onClose(() => opened.close());
  return opened;
}

async function announce(
  handlers: Partial<Handlers> = {},
  more: { schedule?: readonly number[]; lockSeconds?: number; url?: string } = {},
) {
  const redis = queue().connect('worker', more.url);
  const { schedule = [0, 0.1, 0.2], lockSeconds = 30 } = more;
  const added = followUps(schedule.length, 'worker', more.url);
  const { webhook = async () => ({ status: 200 }), voice = async () => done } = handlers;
  const shared = { redis, lockSeconds, logger };
  const completions = consumeCompletions({ ...shared, followUps: added });
  const services = { ...shared, readJob: (jobId: string) => findJobRecord(redis, jobId), followUps: added };
  const kind = {
    ...jobWebhookKind({
      ...{ ...services, scheduleSeconds: schedule, logSeconds: 3600, secretsOf: async () => [] },
      signer: new UrlSigner(Buffer.alloc(32), 'https://sound.example'),
      post: async ({ body }) => ({
        latencyMs: 0,
        ...(await webhook(WebhookPayload.parse(JSON.parse(body)))),
      }),
    }),
    prepare: async (payload: WebhookPayload) => ({
      ready: { id: payload.deliveryId, url: HOOK.webhook, body: JSON.stringify(payload), secrets: [] },
    }),
    turn: async () => undefined,
  };
  const sending = {
    ...voiceKind({ ...services, logSeconds: 3600 } as unknown as Parameters<typeof voiceKind>[0]),
    prepare: async () => ({ ready: undefined }),
    try: (_: undefined, payload: VoicePayload, _attempt: unknown, signal: AbortSignal) =>
      voice(payload, signal),
  };
  const { queues } = added;
  const started = { ...shared, isAlone: false };
  const webhooks = { ...started, queue: queues.webhook, kindOf: () => kind, concurrency: 16 };
  const voices = { ...started, queue: queues.voice, kindOf: () => sending, concurrency: 1000 };
  const consumers = [completions, await FollowUpWorker.start(webhooks), await FollowUpWorker.start(voices)];
  const close = async (): Promise<void> => {
    await Promise.all(consumers.map((consumer) => consumer.close(0)));
  };
  queue().onClose(close);
  return { close };
}

const complete = () => queue().consume(async ({ jobId }) => resultOf(jobId));

async function states(jobId: string) {
  const record = await queue().jobs.read(jobId);
  if (record === undefined) throw new Error('no record');
  const [webhook, voiceMessage] = await Promise.all([
    followUps().webhookState(jobId),
    readVoiceState(queue().redis, record),
  ]);
  return { webhook, voiceMessage };
}

const idsIn = async (name: 'webhook' | 'voice') => {
  const jobs = await queue().queue(name).getJobs();
  return jobs.map((job) => job.id).toSorted();
};

it.runIf(currentRun === 'core')('the end of a voice message is told to those who watch its job', async () => {
  const seen: unknown[] = [];
  const redis = queue().connect('worker');
  const look = async (jobId: string): Promise<void> => {
    seen.push((await states(jobId)).voiceMessage?.status);
  };
  const stop = subscribe(redis, { [CHANGE_CHANNEL]: (jobId) => void look(jobId) }, () => undefined);
  queue().onClose(async () => stop());
  await until('somebody listens', async () => {
    const [, listening] = (await redis.call('PUBSUB', 'NUMSUB', CHANGE_CHANNEL)) as [string, number];
    return listening === 1;
  });
  const sending = Promise.withResolvers<void>();
  await announce({
    async voice() {
      await sending.promise;
      return done;
    },
  });
  complete();
  await queue().reaches(await queue().submit(TENANT, VOICE), 'completed');
  expect(seen).not.toContain('sent');
  sending.resolve();
  await until('its end is told', () => seen.includes('sent'));
});

describe('the end of a job', () => {
  it.runIf(currentRun === 'core')('is told to its webhook, and its result sent into the chat', async () => {
    const told: WebhookPayload[] = [];
    const sent: string[] = [];
    await announce({
      async webhook(payload) {
        told.push(payload);
        return { status: 200 };
      },
      async voice({ jobId }) {
        sent.push(jobId);
        return done;
      },
    });
    complete();
    const jobId = await queue().submit(TENANT, { ...HOOK, ...VOICE });
    const { finishedAtMs } = await queue().reaches(jobId, 'completed');
    await until('both are told', () => told.length >= 2 && sent.length >= 1);
    const [completed, updated] = told.toSorted((a) => (a.event === 'job.completed' ? -1 : 1));
    expect(completed).toMatchObject({
      event: 'job.completed',
      jobId,
      url: HOOK.webhook,
      deliveryId: webhookId(jobId),
      eventTimeMs: finishedAtMs,
    });
    expect(updated).toMatchObject({
      event: 'voice.updated',
      jobId,
      voiceMessage: { status: 'sent', attempts: 1 },
    });
    await expect
      .poll(() => states(jobId))
      .toMatchObject({ webhook: { status: 'delivered' }, voiceMessage: { status: 'sent' } });
    expect(sent).toEqual([jobId]);
  });

  it.runIf(currentRun === 'core')('by failure is told, and nothing is sent', async () => {
    const told: WebhookPayload[] = [];
    await announce({
      async webhook(payload) {
        told.push(payload);
        return { status: 200 };
      },
    });
    queue().consume(async () => {
      throw new ServiceError('INVALID_VIDEO', 'the file is no media');
    });
    const jobId = await queue().submit(TENANT, { ...HOOK, ...VOICE });
    await expect.poll(() => told).toMatchObject([{ event: 'job.failed', jobId }]);
    expect(await states(jobId)).toMatchObject({
      voiceMessage: { status: 'failed', error: { code: 'JOB_FAILED' } },
    });
    expect(await idsIn('voice')).toEqual([]);
  });

  it.runIf(currentRun === 'core')('by cancellation while it waits is told', async () => {
    const told: WebhookPayload[] = [];
    await announce({
      async webhook(payload) {
        told.push(payload);
        return { status: 200 };
      },
    });
    const jobId = await queue().submit(TENANT, HOOK);
    await queue().jobs.cancel(jobId);
    await expect.poll(() => told).toMatchObject([{ event: 'job.failed', jobId }]);
  });

  it.runIf(currentRun === 'all')(
    'is announced once, although whoever announced it was cut off in the middle',
    async () => {
      const jobId = await queue().submit(TENANT, { ...HOOK, ...VOICE });
      // The webhook is added by then, the voice message is not.
      const proxy = await startRedisProxy(queue().server.socketPath, {
        command: voiceId(jobId),
        reachesRedis: false,
      });
      const hang = () => new Promise<never>(() => undefined);
      await announce({ webhook: hang, voice: hang }, { url: proxy.url, lockSeconds: 2 });
      // Closed first, so that nothing waits for answers that cannot come.
      queue().onClose(() => proxy.close());
      complete();
      await proxy.stopped;
      expect(await idsIn('webhook')).toEqual([webhookId(jobId)]);
      expect(await idsIn('voice')).toEqual([]);

      const told: string[] = [];
      const sent: string[] = [];
      await announce(
        {
          async webhook({ event }) {
            told.push(event);
            return { status: 200 };
          },
          async voice(payload) {
            sent.push(payload.jobId);
            return done;
          },
        },
        { lockSeconds: 2 },
      );
      await until('the rest is announced', () => told.length >= 2);
      const completion = queue().queue('completion');
      await until(
        'the announcing itself has ended',
        async () => (await completion.getJobState(completionId(jobId))) === 'completed',
      );
      expect(told.toSorted()).toEqual(['job.completed', 'voice.updated']);
      expect(sent).toEqual([jobId]);
      expect(await idsIn('webhook')).toEqual([webhookId(jobId), webhookId(voiceId(jobId))].toSorted());
    },
  );
});

describe('a voice message', () => {
  const listed = async (jobId: string) => {
    const deliveries = await followUps().list(jobId, () => ({ event: '' }));
    return deliveries.find(({ kind }) => kind === 'voice-message');
  };

  it.runIf(currentRun === 'core')('is listed with each try and its reason', async () => {
    let tries = 0;
    await announce({
      async voice() {
        tries += 1;
        const answer = { httpStatus: 503, latencyMs: 7 };
        return tries === 1
          ? { outcome: 'retry', error: 'the gateway answered 503', ...answer }
          : { ...done, result: { ...SENT, status: 'unknown' }, error: 'the gateway did not answer' };
      },
    });
    complete();
    const jobId = await queue().submit(TENANT, VOICE);
    const first = await until('its first try is listed', async () => {
      const one = await listed(jobId);
      return one?.attempts.length === 1 && one;
    });
    const refused = { httpStatus: 503, latencyMs: 7, error: 'the gateway answered 503' };
    expect(first).toMatchObject({
      ...{ deliveryId: voiceId(jobId), status: 'pending', attempts: [refused] },
      nextAttemptAt: expect.any(String),
    });
    await queue().queue('voice').promoteJobs();
    const last = await until('it has ended', async () => {
      const one = await listed(jobId);
      return one?.status === 'failed' && one;
    });
    expect(last).toMatchObject({
      nextAttemptAt: null,
      attempts: [refused, { httpStatus: null, error: 'the gateway did not answer' }],
    });
  });

  it.runIf(currentRun === 'core')(
    'that a shutdown breaks off is sent by another worker, as the same try',
    async () => {
      const begun = Promise.withResolvers<void>();
      const first = await announce({
        async voice(_payload, signal) {
          begun.resolve();
          return aborted(signal);
        },
      });
      complete();
      const jobId = await queue().submit(TENANT, VOICE);
      await begun.promise;
      await first.close();
      await announce();
      await until('it is sent', async () => (await states(jobId)).voiceMessage?.status === 'sent');
      expect((await states(jobId)).voiceMessage?.attempts).toBe(1);
      expect((await listed(jobId))?.attempts).toMatchObject([{ error: null }]);
    },
  );
});

it.runIf(currentRun === 'core')('a voice message that no try can send is told as failed', async () => {
  const told: unknown[] = [];
  await announce({
    async webhook({ event, voiceMessage }) {
      if (event === 'voice.updated') told.push(voiceMessage);
      return { status: 200 };
    },
    async voice() {
      return { outcome: 'final', error: 'no try will ever help' };
    },
  });
  complete();
  await queue().submit(TENANT, { ...HOOK, ...VOICE });
  await until('it is told', () => told.length === 1);
  expect(told).toMatchObject([{ status: 'failed', error: { code: 'INTERNAL_ERROR' } }]);
});

describe('voice messages that wait', () => {
  const submitVoices = async (count: number, tenant: string, instance: string, delay: number) => {
    for (let nth = 0; nth < count; nth++) {
      await queue().submit(tenant, { voiceMessage: { instance, number: '12025550101', delay } });
    }
  };

  it.runIf(currentRun === 'core')(
    'for an instance that hangs, or for their delay, hold no place of others',
    async () => {
      const begun: string[] = [];
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      await announce({
        async voice({ request: { instance, delay } }) {
          begun.push(`${instance} ${delay}`);
          if (instance !== 'alive') await released;
          return done;
        },
      });
      complete();
      await submitVoices(20, TENANT, 'hangs', 0);
      await submitVoices(32, TENANT, 'waits', 60_000);
      await until('all delays run', () => begun.filter((one) => one === 'waits 60000').length === 32);
      await submitVoices(1, TENANT, 'alive', 0);
      await submitVoices(1, 'tenant02', 'hangs', 0);
      await until('another instance of the key is served', () => begun.includes('alive 0'));
      expect(begun.filter((one) => one === 'hangs 0')).toHaveLength(8);
      release();
      await until('all are sent', () => begun.length === 54);
    },
  );
});

describe('a webhook', () => {
  /** Tells the end of a job; `answer` is what the receiver says to the nth try. */
  async function tellOne(schedule: readonly number[], answer: (nth: number) => Answer | Promise<Answer>) {
    const tries: { atMs: number; deliveryId: string; eventTimeMs: number }[] = [];
    await announce(
      {
        async webhook({ deliveryId, eventTimeMs }) {
          tries.push({ atMs: Date.now(), deliveryId, eventTimeMs });
          return answer(tries.length);
        },
      },
      { schedule },
    );
    complete();
    const jobId = await queue().submit(TENANT, HOOK);
    return { jobId, tries };
  }

  it.runIf(currentRun === 'core')(
    'is tried at the distances of its schedule, each from the end of the try before, always under the same id',
    async () => {
      const endedAtMs: number[] = [];
      const { jobId, tries } = await tellOne([0, 0.4, 1], async (nth) => {
        // Longer than the first distance: counted from the event, the second try would follow at once.
        if (nth === 1) await wait(600);
        endedAtMs.push(Date.now());
        return { status: nth < 3 ? 500 : 204 };
      });
      await expect
        .poll(() => states(jobId))
        .toMatchObject({
          webhook: { status: 'delivered', lastError: null },
        });
      expect(tries.map(({ deliveryId }) => deliveryId)).toEqual(Array(3).fill(webhookId(jobId)));
      const distances = tries.slice(1).map(({ atMs }, index) => atMs - (endedAtMs[index] ?? 0));
      expect(distances[0]).toBeGreaterThanOrEqual(400);
      expect(distances[1]).toBeGreaterThanOrEqual(600);
    },
  );

  it.runIf(currentRun === 'core')(
    'is given up when its tries are used up, and the job stays completed',
    async () => {
      const { jobId, tries } = await tellOne([0, 0.05, 0.1], (nth) => ({ status: 500 + nth }));
      await expect.poll(() => states(jobId)).toMatchObject({ webhook: { status: 'failed' } });
      expect((await states(jobId)).webhook?.lastError).toBe('WEBHOOK_FAILED: the receiver answered 503');
      expect(tries).toHaveLength(3);
      expect(await queue().jobs.read(jobId)).toMatchObject({ status: 'completed' });
    },
  );

  it.runIf(currentRun === 'core')('is not tried again where the receiver wants none any more', async () => {
    const { jobId, tries } = await tellOne([0, 0.05, 0.1], () => ({ status: 410 }));
    await expect.poll(() => states(jobId)).toMatchObject({ webhook: { status: 'failed' } });
    expect(tries).toHaveLength(1);
    expect(await queue().redis.zcard(queueKey('webhook', 'delayed'))).toBe(0);
  });

  it.runIf(currentRun === 'core')('waits as long as the receiver asks', async () => {
    const { tries } = await tellOne([0, 0.05], (nth) =>
      nth === 1 ? { status: 429, retryAfterSeconds: 1 } : { status: 200 },
    );
    await until('the second try', () => tries.length === 2);
    expect((tries[1]?.atMs ?? 0) - (tries[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(1000);
  });

  it.runIf(currentRun === 'core')('waits no longer than an hour, whatever the receiver asks', async () => {
    const { jobId } = await tellOne([0, 0.05], () => ({
      status: 429,
      retryAfterSeconds: 1_000_000,
    }));
    await expect.poll(() => queue().redis.zcard(queueKey('webhook', 'delayed'))).toBe(1);
    const job = await queue().queue('webhook').getJob(webhookId(jobId));
    expect(job?.delay).toBeGreaterThanOrEqual(3_600_000);
    expect(job?.delay).toBeLessThanOrEqual(3_600_000 * 1.1);
  });

  it.runIf(currentRun === 'core')('whose making failed through our fault is tried again', async () => {
    let tries = 0;
    await announce({
      async webhook() {
        tries += 1;
        if (tries === 1) throw new Error('/srv/data is away');
        return { status: 200 };
      },
    });
    complete();
    const jobId = await queue().submit(TENANT, HOOK);
    await expect.poll(() => states(jobId)).toMatchObject({ webhook: { status: 'delivered' } });
    expect(tries).toBe(2);
    const [delivery] = await followUps().list(jobId, () => ({ event: '' }));
    // What went wrong with us is nothing that a caller is to read, here or as the job's last error.
    const job = await queue().queue('webhook').getJob(webhookId(jobId));
    expect(job?.failedReason).toBe('the service could not make this attempt');
    expect(delivery?.attempts).toMatchObject([
      { httpStatus: null, error: 'the service could not make this attempt' },
      { httpStatus: 200, error: null },
    ]);
  });
});
