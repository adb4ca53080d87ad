// @module-tag prosody
// @module-tag slixmpp
/**
 * The gateway's active process is killed, again and again, while another one stands by, with accounts on a real XMPP server, another
 * implementation's client on the other side, and the lease of production: what was asked for under an Idempotency-Key comes once.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { startTestProsody, type TestProsody } from 'soundpost-testing/prosody';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { until } from 'soundpost-testing/until';
import { startPeer } from 'soundpost-testing/xmpp-peer';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { makeFolder } from '../gateway/gateway-fixture.ts';
import {
  type GatewayProcess,
  type GatewayProcesses,
  gatewayProcesses,
} from '../gateway/lease/gateway-processes.ts';
import { jidOf, makeVoiceNote } from '../gateway/xmpp/xmpp-fixture.ts';
import { percentile, randomFrom, report, seed } from './runs.ts';

const KILLS = 20;
const SENDS = 200;
const ACCOUNTS = 100;
/** Sends that are under way at a time. */
const CLIENTS = 8;
/** How soon another process has taken over. */
const TAKEOVER_MS = 15_000;
/** As the worker's client does (src/followups/kinds/gateway-client.ts): answers after which the same request is sent again. */
const AGAIN = new Set([409, 429, 500, 502, 503, 504]);

const names = Array.from({ length: ACCOUNTS }, (_, index) => `account${index + 1}`);
/** A sender and a receiver a round: what a repetition has to search of the archive stays as short as between people. */
const receivers = Array.from({ length: KILLS }, (_, index) => String(12_025_550_200 + index));
const passwords = Object.fromEntries([...receivers, ...names].map((name) => [name, `password of ${name}`]));

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let prosody: TestProsody;
let gateways: GatewayProcesses;

beforeAll(async () => {
  [redis, folder, prosody] = await Promise.all([
    startTestRedis(),
    makeFolder(),
    startTestProsody({ accounts: passwords }),
  ]);
  gateways = gatewayProcesses(redis, {
    dataDir: folder.path,
    outboundAllow: prosody.outboundAllow,
    sendsPerMinute: { xmpp: 0 },
    // That of production.
    election: { timing: {} },
  });
  await gateways.start();
  await gateways.start();
}, 120_000);

afterAll(async () => {
  await gateways.close();
  await redis.close();
  await prosody.close();
  await folder.remove();
});

afterEach(async () => {
  while (gateways.running.length < 2) await gateways.start();
}, 60_000);

const make = ({ call }: GatewayProcess, name: string) =>
  call('POST', '/instance/create', {
    instanceName: name,
    transport: 'xmpp',
    connection: {
      jid: jidOf(name),
      password: passwords[name],
      service: `xmpp://127.0.0.1:${prosody.port}`,
    },
  });

it(
  `a kill in each of ${KILLS} × ${SENDS} keyed sends: none is lost, none comes twice, and sends are answered again`,
  async () => {
    const seeded = seed();
    process.stdout.write(`FAULTS_SEED=${seeded}\n`);
    const random = randomFrom(seeded);
    const audio = (await readFile(await makeVoiceNote(folder.path, 1))).toString('base64');
    const silences: number[] = [];
    let [sends, lost, doubled, repeated] = [0, 0, 0, 0];

    /** Of the last one; 0 once a send was answered since. */
    let killedAt = 0;

    /** Asks one gateway after the other until it is answered. */
    const send = async (name: string, number: string): Promise<string> => {
      const key = randomUUID();
      for (let turn = 0; ; turn += 1) {
        const gateway = gateways.running[turn % gateways.running.length];
        const path = `/message/sendMessengerAudio/${name}`;
        const askedAt = performance.now();
        const answer = await gateway
          ?.call('POST', path, { number, audio }, { 'Idempotency-Key': key })
          .catch(() => undefined);
        if (answer?.status === 200) {
          // What was asked before may have been answered by the one that died.
          if (killedAt > 0 && askedAt > killedAt) {
            silences.push(performance.now() - killedAt);
            killedAt = 0;
          }
          return answer.body.key.id;
        }
        if (answer !== undefined && !AGAIN.has(answer.status)) {
          throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
        }
        if (answer?.body.code !== 'standby') repeated += 1;
        await wait(50);
      }
    };

    for (const [round, receiver] of receivers.entries()) {
      const sender = names[round] ?? '';
      expect((await make(await gateways.active(), sender)).status).toBe(201);
      const peer = await startPeer({
        port: prosody.port,
        jid: jidOf(receiver),
        password: passwords[receiver] ?? '',
      });
      const fatal = Math.floor(SENDS * (0.2 + random() * 0.6));
      const sent: string[] = [];
      let begun = 0;
      const client = async (): Promise<void> => {
        while (begun < SENDS) {
          begun += 1;
          if (begun === fatal) {
            const active = await gateways.active();
            // Not at the begin of a send, but anywhere in those that are under way.
            await wait(random() * 200);
            killedAt = performance.now();
            await active.end('SIGKILL');
          }
          sent.push(await send(sender, receiver));
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, client));
      const last = await send(sender, receiver);
      sent.push(last);
      await peer.seen('the last message', ({ id }) => id === last);
      await peer.do('round_trip');
      const heard = peer.events.filter(({ file }) => file).map(({ id }) => id as string);
      const once = new Set(heard);
      sends += sent.length;
      lost += sent.filter((id) => !once.has(id)).length;
      doubled += heard.length - once.size;
      process.stdout.write(
        `${sends} sends, ${lost} lost, ${doubled} doubled, ${Math.round(silences.at(-1) ?? 0)} ms\n`,
      );
      expect(new Set(sent).size).toBe(SENDS + 1);
      expect(heard.toSorted()).toEqual(sent.toSorted());
      await peer.close();
      await gateways.start();
    }

    report('gateway-takeover: SIGKILL in keyed sends', {
      ...{ kills: KILLS, sends, lost, doubled, requestsRepeated: repeated },
      firstAnswerMs: { p50: Math.round(percentile(silences, 0.5)), max: Math.round(Math.max(...silences)) },
    });
    expect(silences).toHaveLength(KILLS);
    expect(Math.max(...silences)).toBeLessThan(TAKEOVER_MS);
  },
  KILLS * 180_000,
);

it(`a takeover of ${ACCOUNTS} accounts: all are online again`, async () => {
  const active = await gateways.active();
  for (const name of names.slice(KILLS)) expect((await make(active, name)).status).toBe(201);
  const online = async ({ call }: GatewayProcess): Promise<boolean> => {
    const { status, body } = await call('GET', '/instance/fetchInstances');
    const accounts =
      status === 200 ? body.filter((one: { transport: string }) => one.transport === 'xmpp') : [];
    return accounts.length === ACCOUNTS && accounts.every((one: { status: string }) => one.status === 'open');
  };
  await until('all accounts to be online', () => online(active), 60_000);
  const other = gateways.running.find((gateway) => gateway !== active) as GatewayProcess;
  const killedAt = performance.now();
  await active.end('SIGKILL');
  await until('the other one to serve', async () => (await gateways.active(60_000)) === other, 60_000);
  const servesMs = performance.now() - killedAt;
  await until('all accounts to be online again', () => online(other), 60_000);
  const onlineMs = performance.now() - killedAt;
  report('gateway-takeover: XMPP accounts', {
    accounts: ACCOUNTS,
    servesMs: Math.round(servesMs),
    onlineMs: Math.round(onlineMs),
  });
  expect(onlineMs).toBeLessThan(TAKEOVER_MS);
}, 240_000);
