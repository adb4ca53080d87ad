/** A gateway that is killed again and again while it sends over Telegram, which knows no id of ours: nothing arrives twice. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { byRun } from 'soundpost-testing/by-run';
import { seeded } from 'soundpost-testing/random';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { caller, type GatewaySetting, makeFolder, makeTone } from '../gateway-fixture.ts';
import { type FakeBotApi, startFakeBotApi } from './fake-bot-api.ts';
import { createBot } from './telegram-fixture.ts';

const KILLS = byRun({ all: 10, long: 200 });
const KILL_MS = 60_000;
/** Sent at once in each life of the gateway. */
const AT_ONCE = 4;
/** When a process dies: as a send arrives, when it has had its effect, or a moment after its answer. */
const moments = ['arrived', 'sent', 'answered'] as const;

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let api: FakeBotApi;
let running: Awaited<ReturnType<typeof startProcess>> | undefined;

beforeAll(async () => {
  [redis, folder, api] = await Promise.all([startTestRedis(), makeFolder(), startFakeBotApi()]);
  await makeTone(join(folder.path, 'note.ogg'), 1);
});

afterAll(async () => {
  await running?.kill();
  await api.close();
  await redis.close();
  await folder.remove();
});

/** The last status of a request: 200 it was sent, 504 nobody knows. */
const outcomes = new Map<string, number | undefined>();

it(`sends nothing twice in ${KILLS} kills`, { timeout: KILLS * KILL_MS }, async () => {
  const random = seeded(7);
  const audio = (await readFile(join(folder.path, 'note.ogg'))).toString('base64');
  for (let kill = 0; kill <= KILLS; kill += 1) {
    const gateway = await startProcess();
    running = gateway;
    if (kill === 0) await createBot({ api, gateway });
    else await gateway.open();
    const ask = (key: string): Promise<void> => settle(gateway.call, key, audio, gateway.isDead);
    // Those whose answer died with the process before are repeated, as a job's hook does.
    const again = [...outcomes].filter(([, status]) => status === undefined).map(([key]) => ask(key));
    if (kill === KILLS) {
      await Promise.all(again);
      await gateway.kill();
      break;
    }
    const moment = moments[kill % moments.length];
    const dying = Promise.withResolvers<void>();
    api.onSent = () => {
      if (moment === 'sent') dying.resolve();
      else if (moment === 'answered') setTimeout(dying.resolve, random.below(20));
    };
    api.onArrived = moment === 'arrived' ? dying.resolve : undefined;
    const fresh = Array.from({ length: AT_ONCE }, (_, nth) => `${kill}-${nth}`);
    for (const key of fresh) {
      api.person(chatOf(key), `Person ${key}`);
      outcomes.set(key, undefined);
    }
    const asked = [...again, ...fresh.map(ask)];
    await dying.promise;
    await gateway.kill();
    api.onSent = undefined;
    api.onArrived = undefined;
    await Promise.all(asked);
  }
  const counts = new Map<number, number>();
  for (const { chatId } of api.messages) counts.set(chatId, (counts.get(chatId) ?? 0) + 1);
  expect([...counts.values()].filter((count) => count > 1)).toEqual([]);
  expect(outcomes.size).toBe(KILLS * AT_ONCE);
  expect([...outcomes.values()].filter((status) => status !== 200 && status !== 504)).toEqual([]);
  const lost = [...outcomes].filter(([key, status]) => status === 200 && counts.get(chatOf(key)) !== 1);
  expect(lost).toEqual([]);
  // Both ends occur, or the moments were not what they should be.
  expect(new Set(outcomes.values())).toEqual(new Set([200, 504]));
  expect(api.faults).toEqual([]);
});

/** One chat a message, so that what arrived tells which. */
function chatOf(key: string): number {
  const [kill = 0, nth = 0] = key.split('-').map(Number);
  return 1_000_000 + kill * AT_ONCE + nth;
}

/** Asks until there is a final answer, or the process is dead. */
async function settle(
  call: ReturnType<typeof caller>,
  key: string,
  audio: string,
  isDead: () => boolean,
): Promise<void> {
  const isVoice = key.endsWith('0');
  const path = isVoice ? '/message/sendMessengerAudio/bot' : '/message/sendText/bot';
  const body = { number: chatOf(key), ...(isVoice ? { audio } : { text: key }) };
  await until(`${key} is settled`, async () => {
    const answer = await call('POST', path, body, { 'Idempotency-Key': key }).catch(() => undefined);
    if (answer?.status === 200 || answer?.status === 201) outcomes.set(key, 200);
    if (answer?.status === 504) outcomes.set(key, 504);
    return isDead() || outcomes.get(key) !== undefined;
  });
}

async function startProcess() {
  const setting: GatewaySetting = {
    ...{ redisUrl: redis.url, dataDir: folder.path, telegramUrl: api.url, outboundAllow: api.allow },
    sendsPerMinute: { telegram: 0 },
  };
  const child = fork(new URL('../gateway-process.ts', import.meta.url), [JSON.stringify(setting)]);
  const ended = once(child, 'exit');
  const [{ port }] = (await Promise.race([
    once(child, 'message'),
    ended.then(() => Promise.reject(new Error('the gateway process ended at once'))),
  ])) as [{ port: number }];
  const call = caller(`http://127.0.0.1:${port}`);
  let dead = false;
  return {
    call,
    isDead: () => dead,
    open: () =>
      until('the bot is open', async () => {
        const { body } = await call('GET', '/instance/connectionState/bot').catch(() => ({ body: {} }));
        return body.instance?.state === 'open';
      }),
    async kill() {
      dead = true;
      child.kill('SIGKILL');
      await ended;
    },
  };
}
