/** A webhook endpoint that fails again and again is told everything all the same, once an event, as decisions D say. */

import type { Json } from 'soundpost-testing/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HookReceiver } from './hook-receiver.ts';
import { violations } from './invariants.ts';
import { MoodyEndpoint } from './moody-endpoint.ts';
import { isLong, randomFrom, report, runs, seed } from './runs.ts';
import { LONG_LOCKS, Stand } from './stand.ts';

/** Ten tries as in decisions D, in seconds instead of hours. */
const WEBHOOK_SCHEDULE_SECONDS = '0,1,2,3,4,5,6,7,8,9';
const TRIES = 10;
const JOBS = runs(20, 975);
/** Jobs that are done, and so have a voice message and two events; the others find no source and have one. */
const COMPLETED_JOBS = runs(2, 25);
const SUBMITTED_AT_ONCE = 20;
const REST_MS = isLong ? 300_000 : 120_000;

const firstSeed = seed();
let stand: Stand;
/** Answers 410 to everything. */
let gone: HookReceiver;
/** Redirects everything. */
let moved: HookReceiver;
/** Where redirects lead. */
let elsewhere: HookReceiver;

beforeAll(async () => {
  [gone, moved, elsewhere] = await Promise.all([
    HookReceiver.start(),
    HookReceiver.start(),
    HookReceiver.start(),
  ]);
  gone.answer = () => 410;
  moved.answer = () => ({ status: 307, headers: { location: elsewhere.url } });
  stand = await Stand.start({
    allow: [gone.allow, moved.allow, elsewhere.allow],
    environment: { ...LONG_LOCKS, WEBHOOK_SCHEDULE_SECONDS },
  });
  const { secret } = await stand.ask('/v1/webhooks/secret');
  for (const receiver of [gone, moved]) receiver.trust(secret);
});
afterAll(async () => {
  await stand.close();
  await Promise.all([gone, moved, elsewhere].map((receiver) => receiver.close()));
});

/** A job that is over at once: its source is not there. */
const cheap = (at: Stand, options: object = {}) =>
  at.submit({ source: at.web.url('missing.mp4'), webhook: true, options });

async function submitAll(): Promise<void> {
  for (let from = 0; from < JOBS; from += SUBMITTED_AT_ONCE) {
    await Promise.all(
      Array.from({ length: Math.min(SUBMITTED_AT_ONCE, JOBS - from) }, (_, index) =>
        from + index < COMPLETED_JOBS ? stand.submit({ webhook: true, voice: true }) : cheap(stand),
      ),
    );
  }
}

async function deliveriesOf(jobId: string): Promise<Json[]> {
  const { deliveries } = await stand.ask(`/v1/jobs/${jobId}/deliveries`);
  return deliveries.filter(({ kind }: Json) => kind === 'webhook');
}

/** What the record of a notification says that its receiver did not see, as sentences. */
function recordFaults({ deliveryId, event, status, attempts }: Json, receiver: HookReceiver): string[] {
  const seen = receiver.calls.filter(({ id }) => id === deliveryId);
  const faults: string[] = [];
  const told = attempts.map(({ httpStatus }: Json) => httpStatus);
  if (JSON.stringify(told) !== JSON.stringify(seen.map((call) => call.status))) {
    faults.push(`has tries with ${told}, and the receiver answered ${seen.map((call) => call.status)}`);
  }
  for (const [index, { at, httpStatus, latencyMs, error }] of attempts.entries()) {
    const agoMs = (seen[index]?.atMs ?? 0) - Date.parse(at);
    if (agoMs < -5 || agoMs > latencyMs + 1_000) faults.push(`try ${index + 1} was not at ${at}`);
    if ((error === null) !== (httpStatus >= 200 && httpStatus < 300))
      faults.push(`calls ${httpStatus} ${error}`);
  }
  return faults.map((fault) => `${event} ${deliveryId}, ${status}: ${fault}`);
}

it('that fails three times of ten, in every way there is, gets every event once', {
  timeout: REST_MS * 2,
}, async () => {
  const endpoint = new MoodyEndpoint({
    random: randomFrom(firstSeed),
    failing: 0.3,
    silent: runs(1, 30),
    elsewhere: elsewhere.url,
  });
  stand.hooks.answer = (call) => endpoint.answer(call);
  const goneJob = await cheap(stand, { webhook: gone.url });
  const movedJob = await cheap(stand, { webhook: moved.url });
  await submitAll();
  expect(await violations(stand, { restMs: REST_MS }), `FAULTS_SEED=${firstSeed}`).toEqual([]);
  expect(endpoint.faults).toEqual([]);

  const told = stand.accepted.filter(({ jobId }) => jobId !== goneJob && jobId !== movedJob);
  const deliveries = (await Promise.all(told.map(({ jobId }) => deliveriesOf(jobId)))).flat();
  expect(deliveries.flatMap((delivery) => recordFaults(delivery, stand.hooks))).toEqual([]);
  expect(deliveries.filter(({ status }) => status !== 'delivered')).toEqual([]);
  expect(deliveries).toHaveLength(JOBS + COMPLETED_JOBS);
  expect(endpoint.counts.taken).toBe(JOBS + COMPLETED_JOBS);
  const silent = deliveries.flatMap(({ attempts }) => attempts).filter(({ latencyMs }) => latencyMs > 14_000);
  expect(silent).toHaveLength(endpoint.counts.silent ?? 0);
  expect(silent.every(({ latencyMs }) => latencyMs < 20_000)).toBe(true);

  // 410 is an answer, a redirect is none.
  for (const [jobId, receiver, tries, answer] of [
    [goneJob, gone, 1, 410],
    [movedJob, moved, TRIES, 307],
  ] as const) {
    const [delivery, ...more] = await deliveriesOf(jobId);
    expect([delivery.status, delivery.attempts.length, more]).toEqual(['failed', tries, []]);
    expect(recordFaults(delivery, receiver)).toEqual([]);
    expect(receiver.calls.map(({ signatureFault }) => signatureFault)).toEqual(Array(tries).fill(undefined));
    expect(stand.observer.of(jobId).last.webhook).toEqual({
      status: 'failed',
      attempts: tries,
      lastError: `WEBHOOK_FAILED: the receiver answered ${answer}`,
    });
  }
  expect(elsewhere.calls).toEqual([]);
  const { taken, ...failures } = endpoint.counts;
  report('Webhook endpoint', {
    notifications: deliveries.length,
    delivered: taken,
    calls: stand.hooks.calls.length,
    failures,
    seed: firstSeed,
  });
});

it.runIf(isLong)(
  'it is noticed that a worker is hasty, and gives each try another id',
  {
    timeout: 180_000,
  },
  async () => {
    /** What one that fails mostly sees of a worker that knows neither Retry-After nor stable ids. */
    const endpoint = new MoodyEndpoint({
      random: randomFrom(firstSeed),
      failing: 0.8,
      silent: 0,
      elsewhere: 'http://elsewhere.invalid',
    });
    const hasty = await Stand.start({
      environment: { ...LONG_LOCKS, WEBHOOK_SCHEDULE_SECONDS },
      workerPreloads: [`${import.meta.dirname}/sabotage/hasty-webhooks.ts`],
    });
    try {
      // To the endpoint all tries of an event are one, whatever their ids say.
      hasty.hooks.answer = (call) => endpoint.answer({ ...call, id: call.json.jobId });
      await Promise.all(Array.from({ length: 10 }, () => cheap(hasty)));
      const faults = await violations(hasty);
      expect(faults.filter((fault) => /was told under \d+ ids/.test(fault))).not.toEqual([]);
      expect(faults.filter((fault) => /its signature does not hold/.test(fault))).not.toEqual([]);
      expect(endpoint.faults).not.toEqual([]);
    } finally {
      await hasty.close();
    }
  },
);
