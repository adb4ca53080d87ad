/**
 * The messaging gateway is away, busy, dies, or its answers are lost: each voice message reaches the chat once, or its job says
 * that nobody knows (decisions C).
 */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GatewayBehaviour } from './gateway-recorder.ts';
import { violations } from './invariants.ts';
import { OtherGateway } from './other-gateway.ts';
import { submitSurely } from './persistent-client.ts';
import { isLong, randomFrom, report, runs, seed } from './runs.ts';
import { LONG_LOCKS, Stand } from './stand.ts';
import { Supervised } from './supervised.ts';

/** While nobody listens, with random faults, and with a gateway that dies. */
const DOWN = runs(3, 40);
const FAULTY = runs(4, 400);
const DEATHS = runs(1, 60);
/** Tries of a message that may go wrong: the third comes 20 s after the first, the fourth after a minute. */
const MOST_FAILURES = runs(1, 2);
const SUBMITTED_AT_ONCE = 10;
const LONG_MS = isLong ? 1_500_000 : 90_000;
/** The short run has the first; test/gateway/killed-while-sending.all.test.ts has others. */
const points = [
  ...['gateway-after-network', 'gateway-before-delivery', 'gateway-before-network'],
  ...['gateway-before-answer', 'gateway-after-answer', 'gateway-before-intent', 'gateway-after-intent'],
];

const firstSeed = seed();
const random = randomFrom(firstSeed);
let stand: Stand;
/** Its worker sends to a gateway of somebody else. */
let foreign: Stand;
let other: OtherGateway;

beforeAll(async () => {
  other = await OtherGateway.start();
  [stand, foreign] = await Promise.all([
    Stand.start({
      environment: LONG_LOCKS,
      gatewayPreloads: [join(import.meta.dirname, 'gateway-deaths.ts')],
    }),
    Stand.start({ workerEnvironment: { GATEWAY_KIND: 'other', GATEWAY_URL: other.url } }),
  ]);
});
afterAll(async () => {
  await Promise.all([stand, foreign].map((each) => each.close()));
  await other.close();
});

const send = (at: Stand, count: number): Promise<string[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const { jobId } = await submitSurely(at, { voice: true, idempotencyKey: randomUUID() });
      return jobId;
    }),
  );

const voiceOf = (at: Stand, jobId: string) => at.observer.of(jobId).last?.voiceMessage;

/** Jobs whose first try fails because nobody listens. */
async function sendWhileDown(): Promise<void> {
  await stand.gatewayCalls.down();
  const ids = await send(stand, DOWN);
  await until(
    'each message was tried',
    () => ids.every((jobId) => voiceOf(stand, jobId)?.attempts > 0),
    LONG_MS,
  );
  await stand.gatewayCalls.up();
}

const faults: readonly GatewayBehaviour[] = [503, 429, 500, 'drop', 'lose', 'lose', { afterwards: 500 }];

/** Each message fails at random up to MOST_FAILURES times, and the gateway behaves towards those that come later. */
async function sendWithFaults(): Promise<void> {
  const failures = new Map<string, number>();
  let isBegun = false;
  stand.gatewayCalls.behaviour = ({ idempotencyKey = '' }) => {
    const failed = failures.get(idempotencyKey) ?? (isBegun ? MOST_FAILURES : 0);
    if (failed >= MOST_FAILURES || random() > 0.7) return 'pass';
    failures.set(idempotencyKey, failed + 1);
    return faults[Math.floor(random() * faults.length)] ?? 'pass';
  };
  const ids: string[] = [];
  while (ids.length < FAULTY) {
    ids.push(...(await send(stand, Math.min(SUBMITTED_AT_ONCE, FAULTY - ids.length))));
  }
  const wasTried = (jobId: string) =>
    stand.gatewayCalls.calls.some(({ idempotencyKey }) => idempotencyKey?.startsWith(jobId));
  await until('each message was tried', () => ids.every(wasTried), LONG_MS);
  isBegun = true;
}

/** The gateway dies in the middle of each. One at a time: a message that meets several deaths is tried again after minutes only. */
async function sendToDyingGateway(): Promise<void> {
  await stand.observer.atRest(
    stand.accepted.map(({ jobId }) => jobId),
    LONG_MS,
  );
  for (let death = 0; death < DEATHS; death++) {
    const { starts } = stand.gateway;
    writeFileSync(join(stand.folder, 'kills', points[death % points.length] ?? ''), '');
    const ids = await send(stand, 1);
    await until('the gateway has died', () => stand.gateway.starts > starts, 60_000);
    await stand.observer.atRest(ids, LONG_MS);
  }
}

async function messagesInChats(at: Stand): Promise<number> {
  const redis = at.redis.connect();
  try {
    const chats = await redis.keys('{soundpost}:gateway:chat:*');
    const counts = await Promise.all(chats.map((chat) => redis.zcard(chat)));
    return counts.reduce((sum, count) => sum + count, 0);
  } finally {
    redis.disconnect();
  }
}

// Broken by hand (src/gateway/message-sender.ts): an id at random in place of the one that follows from the key. Reported: messages
// that lie in chats and that no job tells of, as many as were in doubt.
it.concurrent('through our own gateway each message is sent once, whatever happens to it', {
  timeout: LONG_MS * 3,
}, async () => {
  await sendWhileDown();
  await sendWithFaults();
  await sendToDyingGateway();
  expect(await violations(stand, { restMs: LONG_MS }), `FAULTS_SEED=${firstSeed}`).toEqual([]);
  const unsent = stand.accepted.filter(({ jobId }) => voiceOf(stand, jobId)?.status !== 'sent');
  expect(unsent).toEqual([]);
  const sends = DOWN + FAULTY + DEATHS;
  const inChats = await messagesInChats(stand);
  expect(inChats).toBe(sends);
  expect(stand.gateway.starts).toBe(1 + DEATHS);
  const { calls } = stand.gatewayCalls;
  report('Gateway', {
    sends,
    duplicates: inChats - sends,
    calls: calls.length,
    answersLost: calls.filter((call) => call.gatewayStatus === 200 && call.seenStatus !== 200).length,
    gatewayDeaths: DEATHS,
    seed: firstSeed,
  });
});

it.runIf(isLong).concurrent(
  'it is noticed that a worker forgets the key that makes a repetition safe',
  {
    timeout: 90_000,
  },
  async () => {
    const keyless = await Stand.start({
      environment: LONG_LOCKS,
      workerPreloads: [join(import.meta.dirname, 'sabotage', 'keyless-sends.ts')],
    });
    try {
      const { calls } = keyless.gatewayCalls;
      keyless.gatewayCalls.behaviour = () => (calls.length > 2 ? 'pass' : 'lose');
      await send(keyless, 2);
      expect(await violations(keyless)).toContainEqual(
        expect.stringMatching(/lie in chats that no job tells of|was sent \d times/),
      );
      expect(await messagesInChats(keyless)).toBe(4);
    } finally {
      await keyless.close();
    }
  },
);

// Broken by hand (src/followups/kinds/voice.ts): the mark of an earlier sending disregarded. Reported: 1004 is sent twice, and
// called sent.
it.concurrent('through another gateway a message in doubt is told as unknown, and sent again only if the operator wants that', {
  timeout: 90_000,
}, async () => {
  const sendTo = (number: string) =>
    foreign.submit({ options: { voiceMessage: { instance: 'main', number } } });
  const killWith = (worker: Supervised) => worker.kill().then(() => 'lose' as const);
  const [keeping] = foreign.workers;
  if (keeping === undefined) throw new Error('the stand has no worker');

  other.behaviour = (number, nth) => {
    if (number === '1001') return 'lose';
    if (number === '1002') return { status: 500, taken: true };
    if (number === '1003' && nth === 1) return { status: 503, taken: false };
    return number === '1004' && nth === 1 ? killWith(keeping) : 'take';
  };
  const kept = await Promise.all(['1001', '1002', '1003'].map(sendTo));
  await foreign.observer.atRest(kept);
  kept.push(await sendTo('1004'));
  await foreign.observer.atRest(kept);
  expect(kept.map((jobId) => voiceOf(foreign, jobId))).toMatchObject([
    { status: 'unknown', error: { code: 'ANSWER_LOST' } },
    { status: 'unknown', error: { code: 'ANSWER_LOST' } },
    { status: 'sent', error: null },
    { status: 'unknown', error: { code: 'ANSWER_LOST' } },
  ]);
  expect(other.sent.toSorted()).toEqual(['1001', '1002', '1003', '1004']);

  await keeping.release();
  const resending = new Supervised('worker 2', /^(Worker)/m, () =>
    foreign.home.start('worker', {
      PUBLIC_URL: foreign.apiUrl,
      GATEWAY_KIND: 'other',
      GATEWAY_URL: other.url,
      VOICE_ON_UNKNOWN: 'resend',
    }),
  );
  foreign.workers.splice(0, 1, resending);
  other.behaviour = (number, nth) => {
    if (nth > 1) return 'take';
    return number === '2001' ? 'lose' : killWith(resending);
  };
  const resent = [await sendTo('2001')];
  // Else the worker might die over this one, too, when it is sent again.
  await foreign.observer.atRest(resent);
  resent.push(await sendTo('2002'));
  await foreign.observer.atRest(resent);
  expect(resent.map((jobId) => voiceOf(foreign, jobId)?.status)).toEqual(['sent', 'sent']);
  expect([other.sentTo('2001'), other.sentTo('2002')]).toEqual([2, 2]);
});
