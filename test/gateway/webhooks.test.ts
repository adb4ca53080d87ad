/** The webhooks of instances. */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { KEY_PREFIX } from 'soundpost-kit/redis/keys';
import { receivedBody } from 'soundpost-testing/received-body';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Answer,
  ada,
  eventually,
  makeFolder,
  makeTone,
  reportPairing,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

interface Delivered {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Planned {
  readonly status: number;
  readonly headers?: Record<string, string>;
  /** It answers no earlier. */
  readonly after?: Promise<void>;
}

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let receiver: Server;
let base: string;
/** The same receiver as another host. */
let otherBase: string;
const delivered: Delivered[] = [];
/** What the receiver answers at a path, in turn; 204 when there is nothing left. */
const answers = new Map<string, Planned[]>();

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  receiver = createServer(async (request, response) => {
    const body = await receivedBody(request);
    if (body === undefined) return;
    const text = body.toString();
    const path = request.url ?? '';
    delivered.push({ path, headers: request.headers, text });
    const { status, headers, after }: Planned = answers.get(path)?.shift() ?? { status: 204 };
    await after;
    response.writeHead(status, headers).end();
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  base = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  otherBase = base.replace('127.0.0.1', 'localhost');
  gateway = await start();
  for (const name of ['one', 'two']) {
    await gateway.call('POST', '/instance/create', { instanceName: name });
  }
});

afterAll(async () => {
  await gateway.close();
  receiver.close();
  await redis.close();
  await folder.remove();
});

beforeEach(async () => {
  delivered.length = 0;
  answers.clear();
});

function start(): Promise<TestGateway> {
  return startTestGateway({
    redisUrl: redis.url,
    dataDir: folder.path,
    outboundAllow: [base, otherBase].map((one) => one.slice('http://'.length)).join(),
    webhookSchedule: [0, 0.3, 0.6],
  });
}

const set = (instance: string, webhook: object): Promise<Answer> =>
  gateway.call('POST', `/webhook/set/${instance}`, { webhook });
const say = (instance: string, text: string): Promise<Answer> =>
  gateway.call('POST', `/inbox/api/instances/${instance}/chats/${ada.jid}/replies`, { as: ada.jid, text });
const at = (path: string): Delivered[] => delivered.filter((one) => one.path === path);
const texts = (path: string): string[] =>
  at(path).map(({ text }) => JSON.parse(text).data.message?.conversation);
const count = (path: string, wanted: number): Promise<Delivered[]> =>
  eventually(
    async () => at(path),
    ({ length }) => length >= wanted,
  );

describe('setting a webhook', () => {
  it('answers what was set, with a secret that stays', async () => {
    const { status, body } = await set('one', { url: `${base}/set`, headers: { 'X-Mine': 'a' } });
    expect(status).toBe(201);
    expect(body).toEqual({
      webhook: {
        instanceName: 'one',
        enabled: true,
        url: `${base}/set`,
        headers: { 'X-Mine': 'a' },
        byEvents: false,
        base64: false,
        events: [
          'messages.upsert',
          'messages.update',
          'connection.update',
          'call',
          'group-participants.update',
        ],
        secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      },
    });
    expect((await gateway.call('GET', '/webhook/find/one')).body).toEqual(body);
    const again = await set('one', { url: `${base}/other`, enabled: false });
    expect(again.body.webhook.secret).toBe(body.webhook.secret);
    expect((await gateway.call('GET', '/webhook/find/two')).body).toBeNull();
  });

  it('takes the names of events in either spelling, and leaves out those of other servers', async () => {
    const { body } = await set('one', {
      url: `${base}/set`,
      events: [
        'MESSAGES_UPSERT',
        'group-participants.update',
        'GROUP_PARTICIPANTS_UPDATE',
        'QRCODE_UPDATED',
        'SEND_MESSAGE',
        'CHATS_SET',
        'CALL',
        'presence.update',
      ],
    });
    expect(body.webhook.events).toEqual([
      'messages.upsert',
      'group-participants.update',
      'qrcode.updated',
      'send.message',
      'call',
      'presence.update',
    ]);
  });

  it.for([
    ['an address that is not public', { url: 'https://127.0.0.1/x' }, /^webhook\.url: /],
    ['http', { url: 'http://example.com/x' }, /^webhook\.url: /],
    ['no address', { url: '' }, /^webhook\.url: /],
    [
      'a header of ours',
      { url: 'https://example.com', headers: { 'Webhook-Id': 'x' } },
      /^webhook\.headers\.Webhook-Id: /,
    ],
    [
      'a header of the connection',
      { url: 'https://example.com', headers: { Host: 'x' } },
      /^webhook\.headers\.Host: /,
    ],
    [
      'a header that would be made a token of',
      { url: 'https://example.com', headers: { jwt_key: 'x' } },
      /^webhook\.headers\.jwt_key: is not supported: /,
    ],
    [
      'a line break in a header',
      { url: 'https://example.com', headers: { A: 'x\r\nB: y' } },
      /^webhook\.headers\.A: /,
    ],
  ] as const)('refuses %s', async ([, webhook, says]) => {
    const { status, body } = await set('one', webhook);
    expect([status, body.code]).toEqual([400, 'bad_request']);
    expect(body.response.message[0]).toMatch(says);
  });

  it('refuses a body without a webhook', async () => {
    const { body } = await gateway.call('POST', '/webhook/set/one', { url: base });
    expect(body.response.message[0]).toMatch(/^webhook: /);
  });
});

describe('byEvents and base64', () => {
  it('send each event to an address of its own, with the media of a message in it', async () => {
    const { body: set$ } = await set('one', {
      url: `${base}/hook/?token=secret`,
      byEvents: true,
      base64: true,
      events: ['messages.upsert', 'send.message', 'messages.update'],
    });
    expect(set$.webhook).toMatchObject({ byEvents: true, base64: true });
    await makeTone(join(folder.path, 'tone.ogg'), 1);
    const audio = await readFile(join(folder.path, 'tone.ogg'));
    const { body: sent } = await gateway.call('POST', '/message/sendMessengerAudio/one', {
      number: ada.number,
      audio: audio.toString('base64'),
    });
    for (const name of ['messages-upsert', 'send-message']) {
      const [got] = await count(`/hook/${name}?token=secret`, 1);
      const { data } = JSON.parse(got?.text ?? '');
      expect(data.message.audioMessage).toEqual(sent.message.audioMessage);
      expect(Buffer.from(data.message.base64, 'base64').equals(audio)).toBe(true);
      // The signature is of the body with its media.
      new Webhook(set$.webhook.secret).verify(got?.text ?? '', got?.headers as Record<string, string>);
    }
    const [update] = await count('/hook/messages-update?token=secret', 1);
    expect(JSON.parse(update?.text ?? '').data).toMatchObject({ key: sent.key });
  });

  it('are also known by the names that they had before', async () => {
    const { body } = await set('one', { url: `${base}/set`, webhookByEvents: true, webhookBase64: 'true' });
    expect(body.webhook).toMatchObject({ byEvents: true, base64: true });
  });

  it('has at most four events with media on their way, and the others hold up nothing', async () => {
    const names = Array.from({ length: 6 }, (_, nth) => `media-${nth}`);
    const note = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
    const taken = Promise.withResolvers<void>();
    const held = (): Delivered[] => names.flatMap((name) => at(`/${name}`));
    for (const [nth, name] of names.entries()) {
      await gateway.call('POST', '/instance/create', { instanceName: name });
      const host = nth % 2 === 0 ? base : otherBase;
      await set(name, { url: `${host}/${name}`, base64: true, events: ['messages.upsert'] });
      answers.set(`/${name}`, [{ status: 204, after: taken.promise }]);
    }
    await Promise.all(
      names.map((name) =>
        gateway.call('POST', `/message/sendMessengerAudio/${name}`, { number: ada.number, audio: note }),
      ),
    );
    await set('two', { url: `${base}/beside`, base64: true, events: ['messages.upsert'] });
    await say('two', 'no media');
    await count('/beside', 1);
    const client = new Redis(redis.socketPath);
    const queue = new Queue('gateway-webhook', { connection: client, prefix: KEY_PREFIX });
    // They wait as delayed jobs, in no place of the worker.
    await eventually(
      async () => (await queue.getDelayed()).filter(({ data }) => data.envelope.includes('"media-')),
      (parked) => parked.length === 2,
    );
    expect(held()).toHaveLength(4);
    taken.resolve();
    await eventually(
      async () => held(),
      ({ length }) => length === 6,
    );
    await queue.close();
    client.disconnect();
    for (const name of names) await gateway.call('DELETE', `/instance/delete/${name}`);
  });

  it('tell an event without its media where the stored copy is damaged, and the log says why', async () => {
    await set('one', { url: `${base}/damaged`, base64: true, events: ['messages.upsert'] });
    const damaged = Promise.withResolvers<void>();
    answers.set('/damaged', [{ status: 500, after: damaged.promise }]);
    const { body: sent } = await gateway.call('POST', '/message/sendMessengerAudio/one', {
      number: ada.number,
      audio: (await readFile(join(folder.path, 'tone.ogg'))).toString('base64'),
    });
    const stored = join(folder.path, 'storage', sent.message.audioMessage.directPath);
    await writeFile(stored, (await readFile(stored)).fill(7, 40, 50));
    damaged.resolve();
    const [, got] = await count('/damaged', 2);
    expect(JSON.parse(got?.text ?? '').data.message).toEqual(sent.message);
    const latest = await eventually(
      async () => (await gateway.call('GET', '/webhook/deliveries/one')).body.deliveries[0],
      ({ status }) => status === 'delivered',
    );
    expect(latest.attempts.at(-1)).toMatchObject({ httpStatus: 204, error: /without its media/ });
  });

  it('are off unless they are asked for', async () => {
    await set('one', { url: `${base}/plain`, events: ['messages.upsert'] });
    const { body } = await gateway.call('POST', '/message/sendMessengerAudio/one', {
      number: ada.number,
      audio: (await readFile(join(folder.path, 'tone.ogg'))).toString('base64'),
    });
    const [got] = await count('/plain', 1);
    expect(JSON.parse(got?.text ?? '').data.message).toEqual(body.message);
  });
});

describe('an event', () => {
  it('is told once to a receiver that takes it, signed, in the order of what happened', async () => {
    const { body } = await set('one', { url: `${base}/order`, events: ['messages.upsert'] });
    for (const text of ['a', 'b', 'c', 'd']) await say('one', text);
    const got = await count('/order', 4);
    expect(texts('/order')).toEqual(['a', 'b', 'c', 'd']);
    const hook = new Webhook(body.webhook.secret);
    for (const { text, headers } of got) {
      expect(hook.verify(text, headers as Record<string, string>)).toMatchObject({
        event: 'messages.upsert',
        instance: 'one',
      });
      expect(headers['content-type']).toBe('application/json');
    }
    expect(new Set(got.map(({ headers }) => headers['webhook-id'])).size).toBe(4);
  });

  it('is told again, as the same one, until the receiver takes it', async () => {
    await set('one', { url: `${base}/retry`, events: ['messages.upsert'] });
    answers.set('/retry', [{ status: 500 }]);
    await say('one', 'first');
    await count('/retry', 2);
    await say('one', 'next');
    const [first, again] = await count('/retry', 3);
    expect(texts('/retry')).toEqual(['first', 'first', 'next']);
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(again?.text).toBe(first?.text);
  });

  it('that the receiver did not take holds up none behind it', async () => {
    await set('one', { url: `${base}/behind`, events: ['messages.upsert'] });
    answers.set('/behind', [{ status: 500, headers: { 'retry-after': '3600' } }]);
    await say('one', 'first');
    await count('/behind', 1);
    await say('one', 'second');
    await count('/behind', 2);
    expect(texts('/behind')).toEqual(['first', 'second']);
  });

  it('is given up after the last entry of the schedule', async () => {
    await set('one', { url: `${base}/never`, events: ['messages.upsert'] });
    answers.set(
      '/never',
      Array.from({ length: 3 }, () => ({ status: 302, headers: { location: '/elsewhere' } })),
    );
    await say('one', 'lost');
    await count('/never', 3);
    await set('one', { url: `${base}/after`, events: ['messages.upsert'] });
    await say('one', 'next');
    await count('/after', 1);
    expect(texts('/after')).toEqual(['next']);
    expect(at('/elsewhere')).toEqual([]);
  });

  it('is not told again to a receiver that is gone for good', async () => {
    await set('one', { url: `${base}/gone`, events: ['messages.upsert'] });
    answers.set('/gone', [{ status: 410 }]);
    await say('one', 'first');
    await count('/gone', 1);
    await say('one', 'second');
    await count('/gone', 2);
    await say('one', 'third');
    await count('/gone', 3);
    expect(texts('/gone')).toEqual(['first', 'second', 'third']);
  });

  it('of one instance goes to no other one’s webhook, and one that hangs holds up no other', async () => {
    await set('one', { url: `${base}/one`, events: ['messages.upsert'] });
    await set('two', { url: `${base}/two`, events: ['messages.upsert', 'call'] });
    answers.set(
      '/one',
      Array.from({ length: 3 }, () => ({ status: 500 })),
    );
    await say('one', 'for one');
    await say('two', 'for two');
    await count('/two', 1);
    await count('/one', 3);
    expect(new Set(texts('/one'))).toEqual(new Set(['for one']));
    expect(texts('/two')).toEqual(['for two']);
  });

  it('that was not asked for is not told, nor any to a webhook that is switched off', async () => {
    await set('one', { url: `${base}/off`, events: ['messages.upsert'], enabled: false });
    await say('one', 'unheard');
    await set('one', { url: `${base}/off`, events: ['call'] });
    await say('one', 'unheard');
    await gateway.call('POST', '/inbox/api/instances/one/calls', { as: ada.jid });
    await count('/off', 1);
    expect(at('/off').map(({ text }) => JSON.parse(text))).toMatchObject([
      { event: 'call', data: { from: ada.jid, status: 'offer', isVideo: false } },
    ]);
  });

  it('of a gateway that stopped before it was taken is told by the next one', async () => {
    await set('one', { url: `${base}/restart`, events: ['messages.upsert'] });
    answers.set('/restart', [{ status: 500 }]);
    await say('one', 'through the restart');
    await count('/restart', 1);
    await gateway.close();
    gateway = await start();
    const got = await count('/restart', 2);
    // A third time where the second try was on its way when the gateway stopped.
    expect(new Set(texts('/restart'))).toEqual(new Set(['through the restart']));
    expect(new Set(got.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  it('goes nowhere any more when its instance is deleted', async () => {
    await gateway.call('POST', '/instance/create', { instanceName: 'brief' });
    await set('brief', { url: `${base}/brief`, events: ['messages.upsert'] });
    const deleted = Promise.withResolvers<void>();
    answers.set('/brief', [{ status: 500, after: deleted.promise }]);
    await say('brief', 'x');
    await count('/brief', 1);
    await gateway.call('DELETE', '/instance/delete/brief');
    deleted.resolve();
    await set('one', { url: `${base}/still`, events: ['messages.upsert'] });
    answers.set('/still', [{ status: 500 }]);
    await say('one', 'y');
    // Later than the second try of the other one would have been.
    await count('/still', 2);
    expect(at('/brief')).toHaveLength(1);
  });
});

it('connection.update says that nobody paired the instance, and why', async () => {
  await set('one', { url: `${base}/unpaired`, events: ['connection.update'] });
  const { body } = await gateway.call('GET', '/instance/fetchInstances?instanceName=one');
  const client = new Redis(redis.socketPath);
  await reportPairing(client, body[0].id, undefined);
  client.disconnect();
  const [got] = await count('/unpaired', 1);
  expect(JSON.parse(got?.text ?? '').data).toEqual({
    instance: 'one',
    state: 'refused',
    reason: expect.stringMatching(/^nobody paired the instance/),
    statusReason: 428,
  });
});

describe('the log of deliveries', () => {
  const deliveriesOf = async (instance: string): Promise<Answer['body'][]> =>
    (await gateway.call('GET', `/webhook/deliveries/${instance}`)).body.deliveries;
  const replay = (instance: string, deliveryId: unknown): Promise<Answer> =>
    gateway.call('POST', `/webhook/replay/${instance}`, { deliveryId });
  const latestIs = (instance: string, status: string): Promise<Answer['body']> =>
    eventually(
      async () => (await deliveriesOf(instance))[0],
      (latest) => latest?.status === status,
    );
  const attempt = (httpStatus: number): object => ({
    at: expect.stringMatching(/Z$/),
    httpStatus,
    latencyMs: expect.any(Number),
    error: httpStatus === 204 ? null : `the receiver answered ${httpStatus}`,
  });

  it('shows each try, the newest delivery first', async () => {
    await set('one', { url: `${base}/logged`, events: ['messages.upsert'] });
    answers.set('/logged', [{ status: 500 }]);
    await say('one', 'first');
    const [told] = await count('/logged', 2);
    expect(await latestIs('one', 'delivered')).toEqual({
      deliveryId: told?.headers['webhook-id'],
      event: 'messages.upsert',
      status: 'delivered',
      nextAttemptAt: null,
      attempts: [attempt(500), attempt(204)],
    });
    await say('one', 'second');
    await count('/logged', 3);
    expect((await deliveriesOf('one'))[1].deliveryId).toBe(told?.headers['webhook-id']);
    expect((await deliveriesOf('two')).map(({ deliveryId }) => deliveryId)).not.toContain(
      told?.headers['webhook-id'],
    );
  });

  it('says when a delivery is tried next, and what came of the last try', async () => {
    await set('one', { url: `${base}/later`, events: ['messages.upsert'] });
    answers.set('/later', [{ status: 503, headers: { 'retry-after': '3600' } }]);
    await say('one', 'first');
    const latest = await eventually(
      async () => (await deliveriesOf('one'))[0],
      (one) => one?.attempts.length === 1 && one.nextAttemptAt !== null,
    );
    expect(latest).toMatchObject({ status: 'pending', attempts: [attempt(503)] });
    expect(Date.parse(latest.nextAttemptAt) - Date.now()).toBeGreaterThan(3_500_000);
    // One that is pending is made at once.
    expect((await replay('one', latest.deliveryId)).status).toBe(200);
    await count('/later', 2);
    expect((await latestIs('one', 'delivered')).attempts).toEqual([attempt(503), attempt(204)]);
  });

  it('lets one that was given up be made again, as the same one and on the whole schedule', async () => {
    await set('one', { url: `${base}/mended`, events: ['messages.upsert'] });
    answers.set(
      '/mended',
      Array.from({ length: 4 }, () => ({ status: 500 })),
    );
    await say('one', 'lost');
    const { deliveryId, attempts } = await latestIs('one', 'failed');
    expect(attempts).toHaveLength(3);
    expect((await replay('one', deliveryId)).body.deliveries[0].deliveryId).toBe(deliveryId);
    const got = await count('/mended', 5);
    expect(new Set(got.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([deliveryId]));
    expect((await latestIs('one', 'delivered')).attempts).toHaveLength(5);
  });

  it('of another instance, or of nothing, lets nothing be made again', async () => {
    await set('one', { url: `${base}/own`, events: ['messages.upsert'] });
    await say('one', 'mine');
    await count('/own', 1);
    const { deliveryId } = await latestIs('one', 'delivered');
    for (const answer of [await replay('two', deliveryId), await replay('one', 'evt_1-0')]) {
      expect([answer.status, answer.body.code]).toEqual([404, 'delivery_not_found']);
    }
    expect((await replay('one', 7)).status).toBe(400);
    expect(at('/own')).toHaveLength(1);
  });
});

it('neither secrets, addresses and headers of webhooks nor passwords of accounts are stored as they are', async () => {
  const { body } = await set('one', { url: `${base}/secret-path`, headers: { 'X-Key': 'secret-header' } });
  const created = await gateway.call('POST', '/instance/create', {
    instanceName: 'jabber',
    transport: 'xmpp',
    connection: { jid: 'me@chat.invalid', password: 'secret-password' },
  });
  expect(created.status).toBe(201);
  expect(JSON.stringify(created.body)).not.toContain('secret-password');
  expect(JSON.stringify((await gateway.call('GET', '/instance/fetchInstances')).body)).not.toContain(
    'secret-password',
  );
  const client = new Redis(redis.socketPath);
  const dump: string[] = [];
  for (const key of await client.keys('*')) {
    if ((await client.type(key)) === 'hash') dump.push(JSON.stringify(await client.hgetall(key)));
  }
  client.disconnect();
  expect(dump.join()).toContain(created.body.instance.instanceId);
  for (const secret of [body.webhook.secret, 'secret-path', 'secret-header', 'secret-password']) {
    expect(dump.join()).not.toContain(secret);
  }
  await gateway.call('DELETE', '/instance/delete/jabber');
});

it('an instance on xmpp needs to know its account', async () => {
  const create = (connection?: object) =>
    gateway.call('POST', '/instance/create', { instanceName: 'jabber', transport: 'xmpp', connection });
  const fields = ({ body }: Answer) => body.response.message.map((message: string) => message.split(':')[0]);
  expect(fields(await create())).toEqual(['connection']);
  expect(fields(await create({ jid: 'nobody', service: 'http://x' })).toSorted()).toEqual([
    'connection.jid',
    'connection.password',
    'connection.service',
  ]);
});
