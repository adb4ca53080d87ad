/** Webhooks and voice messages when receivers never answer, and after outages that outlast their schedules (decisions C and D). */

import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import type { Json } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jobKey, queueKey } from '../jobs/bullmq-keys.ts';
import { logger } from '../jobs/queue-fixture.ts';
import { HookReceiver } from './hook-receiver.ts';
import { isLong, percentile, promised, report, runs } from './runs.ts';
import { LONG_LOCKS, Stand } from './stand.ts';

const HOLES = 5;
/** More than the holes can hold in the time of all probes: a call that is never answered takes 15 s. */
const JOBS_TO_HOLES = runs(60, 1000);
const PROBES = runs(4, 100);
/** From the end of a job. */
const LONGEST_MS = { webhook: 2_000, voice: 5_000 };
const SUBMITTED_AT_ONCE = 20;
const JOBS_IN_OUTAGE = runs(4, 20);
/** From the start of the workers to that of gateway and receivers. */
const BACK_AFTER_MS = runs(3_000, 60_000);
const REST_MS = runs(120_000, 900_000);
const HOUR_MS = 60 * 60 * 1000;

let stand: Stand;
let redis: Redis;
let holes: HookReceiver[];
/** Everybody's flows behind one host, as at n8n or Zapier. */
let flows: HookReceiver;

beforeAll(async () => {
  holes = await Promise.all(Array.from({ length: HOLES }, () => HookReceiver.start()));
  for (const hole of holes) hole.answer = () => 'silent';
  flows = await HookReceiver.start();
  flows.answer = ({ path }) => (path.startsWith('/dead') ? 'silent' : 204);
  stand = await Stand.start({
    allow: [...holes, flows].map(({ allow }) => allow),
    environment: {
      ...LONG_LOCKS,
      WEBHOOK_SCHEDULE_SECONDS: isLong
        ? '0,5,300,1800,7200,18000,36000,50400,72000,86400'
        : '0,1,4,12,30,60,120,240,480,960',
    },
  });
  redis = connectRedis({ url: stand.redis.url, role: 'request', logger });
}, 120_000);
afterAll(async () => {
  await closeRedis(redis);
  await stand.close();
  await Promise.all([...holes, flows].map((hole) => hole.close()));
});

it("one key's receivers that never answer delay nobody else's webhooks and voice messages", {
  timeout: REST_MS,
}, async () => {
  const key = await stand.newKey('holes');
  for (let from = 0; from < JOBS_TO_HOLES; from += SUBMITTED_AT_ONCE) {
    await Promise.all(
      Array.from({ length: SUBMITTED_AT_ONCE }, (_, nth) =>
        stand.submit({
          key,
          source: stand.web.url('missing.mp4'),
          options: { webhook: holes[nth % HOLES]?.url },
        }),
      ),
    );
  }
  /** Jobs whose webhook had a try. */
  const called = () => new Set(holes.flatMap(({ calls }) => calls.map(({ json }) => json.jobId))).size;
  await until('each hole is asked', () => called() >= HOLES);

  const waits = { webhook: [] as number[], voice: [] as number[] };
  for (let probe = 0; probe < PROBES; probe++) {
    const jobId = await stand.submit({ webhook: true, voice: true });
    const told = (event: string) =>
      until(
        `${event} of ${jobId}`,
        () => stand.hooks.calls.find(({ json }) => json.jobId === jobId && json.event === event),
        60_000,
      );
    const completed = await told('job.completed');
    const updated = await told('voice.updated');
    // It has overtaken those that were there before it.
    expect(called()).toBeLessThan(JOBS_TO_HOLES);
    const endedAtMs = Date.parse(completed.json.timestamp);
    waits.webhook.push(completed.atMs - endedAtMs);
    waits.voice.push(Date.parse(updated.json.timestamp) - endedAtMs);
  }
  const [webhookP95, voiceP95] = [percentile(waits.webhook, 0.95), percentile(waits.voice, 0.95)];
  report('Receivers that never answer', { jobs: JOBS_TO_HOLES, probes: PROBES, webhookP95, voiceP95 });
  promised(webhookP95, LONGEST_MS.webhook);
  promised(voiceP95, LONGEST_MS.voice);
});

it('paths that never answer delay no other path of their host, of their key or of another', {
  timeout: REST_MS,
}, async () => {
  const flow = (path: string): string => flows.url.replace(/hook$/, path);
  const [key, other] = await Promise.all([stand.newKey('flows'), stand.newKey('other')]);
  await Promise.all(
    Array.from({ length: 40 }, (_, nth) =>
      stand.submit({
        key,
        source: stand.web.url('missing.mp4'),
        options: { webhook: flow(`dead/${nth % 4}`) },
      }),
    ),
  );
  await until('the dead paths are asked', () => flows.calls.length >= 4);
  for (const when of ['unanswered', 'failing']) {
    const waits: Record<string, number[]> = { own: [], other: [] };
    for (let probe = 0; probe < PROBES; probe++) {
      for (const [whose, asking] of [
        ['own', key],
        ['other', other],
      ] as const) {
        const options = { webhook: flow(`good/${whose}`) };
        const jobId = await stand.submit({ key: asking, source: stand.web.url('missing.mp4'), options });
        const told = await until(
          `the webhook of ${jobId}`,
          () => flows.calls.find(({ json }) => json.jobId === jobId),
          60_000,
        );
        waits[whose]?.push(told.atMs - Date.parse(told.json.timestamp));
      }
    }
    for (const [whose, values] of Object.entries(waits)) {
      const p95 = percentile(values, 0.95);
      report('Dead paths of a host', { when, whose, probes: PROBES, p95 });
      promised(p95, LONGEST_MS.webhook, whose);
    }
    await until(
      'the dead paths fail',
      () => flows.calls.filter(({ path }) => path.includes('dead')).length >= 8,
    );
  }
});

/** What stands in Redis then looks as if so much time had passed: Redis' own clock cannot be set, libfaketime clashes with its allocator. */
async function timePasses(ms: number): Promise<void> {
  for (const queue of ['webhook', 'voice', 'completion', 'extract'] as const) {
    for (const [state, unit] of [
      ['delayed', 0x1000],
      ['completed', 1],
      ['failed', 1],
    ] as const) {
      const set = queueKey(queue, state);
      for (const jobId of await redis.zrange(set, '0', '-1')) {
        await redis.zincrby(set, -ms * unit, jobId);
        for (const field of ['timestamp', 'processedOn', 'finishedOn']) {
          if (await redis.hexists(jobKey(queue, jobId), field)) {
            await redis.hincrby(jobKey(queue, jobId), field, -ms);
          }
        }
      }
    }
  }
  // The janitor begins anew, behind the jobs that are older now.
  await redis.del(ownKey('janitor'));
}

describe('after an outage of everything', () => {
  it.each(isLong ? [2, 25, 72] : [25])(
    'of %i h all is delivered',
    { timeout: REST_MS + 120_000 },
    async (hours) => {
      stand.hooks.answer = () => 'cut';
      await stand.gatewayCalls.down();
      const jobIds = await Promise.all(
        Array.from({ length: JOBS_IN_OUTAGE }, () => stand.submit({ webhook: true, voice: true })),
      );
      const jobs = (): Promise<Json[]> => Promise.all(jobIds.map((jobId) => stand.ask(`/v1/jobs/${jobId}`)));
      await until(
        'each was tried',
        async () =>
          (await jobs()).every(
            ({ webhook, voiceMessage }) => webhook?.attempts > 0 && voiceMessage?.attempts > 0,
          ),
        60_000,
      );
      await Promise.all(stand.workers.map((worker) => worker.release()));
      await timePasses(hours * HOUR_MS);
      await stand.addWorker().ready();
      const back = setTimeout(() => {
        stand.hooks.answer = () => 204;
        stand.gatewayCalls.up().catch(() => undefined);
      }, BACK_AFTER_MS);
      try {
        await until(
          'all is delivered',
          async () =>
            (await jobs()).every(
              ({ webhook, voiceMessage }) => webhook.status === 'delivered' && voiceMessage.status === 'sent',
            ),
          REST_MS,
        ).catch(async (error: Error) => {
          const states = (await jobs()).map(({ webhook, voiceMessage }) => ({ webhook, voiceMessage }));
          throw new Error(`${error.message}: ${JSON.stringify(states)}`);
        });
      } finally {
        clearTimeout(back);
      }
      const attempts = (await jobs()).map(({ webhook, voiceMessage }) => [
        webhook.attempts,
        voiceMessage.attempts,
      ]);
      report('Outage of everything', {
        hours,
        jobs: jobIds.length,
        delivered: attempts.length,
        mostAttempts: Math.max(...attempts.flat()),
      });
    },
  );
});
