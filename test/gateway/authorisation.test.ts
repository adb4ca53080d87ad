/**
 * Who may do what (decisions B "Keys"): every route that the gateway has mounted against every kind of caller. The rows are
 * held to the routes, so that a route without a row fails; the columns are the same for all of them.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandsOfRequests } from 'soundpost-testing/commands-of-requests';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answer,
  API_KEY,
  ada,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';
import { mountedRoutes, tableRoutes } from './mounted-routes.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let audio = '';
let group = '';
/** Tokens of two instances, and of one that was deleted. */
const tokens = { alpha: '', beta: '', deleted: '' };
const ids = { alpha: '', beta: '' };

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path, trustProxy: 1 });
  await makeTone(join(folder.path, 'tone.ogg'), 1);
  audio = (await readFile(join(folder.path, 'tone.ogg'))).toString('base64');
  for (const name of ['alpha', 'beta'] as const) {
    ({ token: tokens[name], id: ids[name] } = await newInstance(name));
  }
  tokens.deleted = (await newInstance('deleted')).token;
  await gateway.call('DELETE', '/instance/delete/deleted');
  const { body } = await gateway.call('POST', '/chat/findContacts/alpha');
  group = body.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
});

/** From here on: what starts the gateway is no request. */
let counted: ReturnType<typeof commandsOfRequests>;
beforeAll(() => {
  counted = commandsOfRequests();
});

afterAll(async () => {
  counted.stop();
  await gateway.close();
  await redis.close();
  await folder.remove();
});

let instances = 0;

function newName(): string {
  instances += 1;
  return `made-${instances}`;
}

async function newInstance(instanceName = newName()): Promise<{ name: string; token: string; id: string }> {
  const { body } = await gateway.call('POST', '/instance/create', { instanceName });
  return { name: instanceName, token: body.hash, id: body.instance.instanceId };
}

interface Row {
  /** What follows `{instance}` in the path, or a query. */
  readonly query?: () => string | Promise<string>;
  readonly body?: () => unknown;
  /** Status of a right request, where it is not the documented one. */
  readonly right?: number;
  /** Ends what it is asked of: each right request has an instance of its own. */
  readonly ends?: true;
}

const voice = (): object => ({ number: ada.number, audio });
function soundForm(): FormData {
  const form = new FormData();
  form.append('base64', audio);
  return form;
}
const block = (): object => ({ number: ada.number, status: 'unblock' });
const groupQuery = (): string => `?groupJid=${encodeURIComponent(group)}`;
const newInviteCode = async (): Promise<string> =>
  (await gateway.call('GET', `/group/inviteCode/alpha${groupQuery()}`)).body.inviteCode;

/** The routes of the table: what a good request says. */
const rows: Readonly<Record<string, Row>> = {
  'POST /message/sendMessengerAudio/:instance': { body: voice },
  'POST /message/sendWhatsAppAudio/:instance': { body: voice },
  'POST /message/sendText/:instance': { body: () => ({ number: ada.number, text: 'Hello.' }), right: 201 },
  'POST /process-audio': { body: soundForm },
  'POST /instance/restart/:instance': {},
  'POST /settings/set/:instance': { body: () => ({ readMessages: true }) },
  'GET /settings/find/:instance': {},
  'POST /chat/updateMessage/:instance': {
    body: () => ({ number: ada.number, text: 'changed', key: { id: sentId } }),
  },
  'POST /group/sendInvite/:instance': { body: () => ({ groupJid: group, numbers: [ada.number] }) },
  'GET /group/inviteCode/:instance': { query: groupQuery },
  'POST /group/revokeInviteCode/:instance': { query: groupQuery },
  'GET /group/acceptInviteCode/:instance': {
    query: async () => `?inviteCode=${await newInviteCode()}`,
  },
  'GET /group/participants/:instance': { query: groupQuery },
  'POST /chat/sendPresence/:instance': { body: () => ({ number: ada.number, delay: 0 }) },
  'POST /message/updateBlockStatus/:instance': { body: block },
  'POST /chat/updateBlockStatus/:instance': { body: block },
  'POST /chat/findContacts/:instance': {},
  'POST /chat/findChats/:instance': {},
  'GET /chat/fetchPrivacySettings/:instance': {},
  'POST /instance/create': { body: () => ({ instanceName: newName() }) },
  'GET /instance/fetchInstances': {},
  'DELETE /instance/delete/:instance': { ends: true },
  'GET /instance/connect/:instance': {},
  'GET /instance/connectionState/:instance': {},
  'DELETE /instance/logout/:instance': { ends: true },
  'POST /webhook/set/:instance': {
    body: () => ({
      webhook: { enabled: false, url: 'https://hooks.example.com/', events: ['MESSAGES_UPSERT'] },
    }),
  },
  'GET /webhook/find/:instance': {},
  'GET /webhook/deliveries/:instance': {},
  // There is nothing to replay, which nobody else is told.
  'POST /webhook/replay/:instance': { body: () => ({ deliveryId: 'evt_1-0' }), right: 404 },
};

/** The data of the inbox: status of a good request. */
const inboxRows: Readonly<Record<string, { readonly right: number; readonly body?: () => unknown }>> = {
  'GET /inbox/api/instances/:instance/chats': { right: 200 },
  'GET /inbox/api/instances/:instance/chats/:jid/messages': { right: 200 },
  'GET /inbox/api/instances/:instance/chats/:jid/people': { right: 200 },
  'POST /inbox/api/instances/:instance/chats/:jid/opened': { right: 204 },
  'POST /inbox/api/instances/:instance/chats/:jid/messages/:id/played': { right: 204 },
  'POST /inbox/api/instances/:instance/chats/:jid/replies': {
    right: 201,
    body: () => ({ as: ada.jid, text: 'hello' }),
  },
  'POST /inbox/api/instances/:instance/chats/:jid/typing': {
    right: 204,
    body: () => ({ as: ada.jid, presence: 'composing' }),
  },
  'POST /inbox/api/instances/:instance/calls': { right: 201, body: () => ({ as: ada.jid }) },
  'DELETE /inbox/api/instances/:instance/calls/:call': { right: 204 },
  'POST /inbox/api/instances/:instance/blocks': {
    right: 204,
    body: () => ({ as: ada.jid, blocked: false }),
  },
  'POST /inbox/api/instances/:instance/groups': {
    right: 201,
    body: async () => ({ inviteCode: await newInviteCode() }),
  },
};

/** Looked at below one by one: they name no instance. */
const otherInboxRoutes = ['POST /inbox/api/session', 'GET /inbox/api/events', 'GET /inbox/api/instances'];

/** Without a key: health and documentation, ciphertext, and pages that hold nothing. */
const openRoutes: Readonly<Record<string, number>> = {
  'GET /health/live': 200,
  'GET /health/ready': 200,
  'GET /openapi.json': 200,
  'GET /': 302,
  'GET /docs': 200,
  'GET /media/:file': 404,
  'GET /i/:code': 302,
  'GET /inbox/': 308,
};

let sentId = '';

beforeAll(async () => {
  sentId = (await gateway.call('POST', '/message/sendMessengerAudio/alpha', voice())).body.key.id;
});

let addresses = 0;

/** From an address that nobody else comes from, since wrong keys are counted by address. */
async function ask(
  name: string,
  instance: string,
  headers: Record<string, string>,
  row: Row = rows[name] ?? inboxRows[name] ?? {},
): Promise<Answer> {
  const [method = '', path = ''] = name.split(' ');
  addresses += 1;
  const from = { 'X-Forwarded-For': `198.18.${addresses >> 8}.${addresses & 255}`, apikey: '' };
  const concrete = path
    .replace(':instance', instance)
    .replace(':jid', ada.jid)
    .replace(':id', sentId)
    .replace(/:\w+/, 'X');
  const query = (await row.query?.()) ?? '';
  return gateway.call(method, concrete + query, await row.body?.(), { ...from, ...headers });
}

/** Everything of an answer but what tells one request from another, and whether its body had arrived. */
function comparable({ status, headers, body }: Answer): unknown {
  const differing = ['date', 'x-request-id', 'connection', 'keep-alive'];
  const told = [...headers].filter(([name]) => !differing.includes(name));
  return { status, headers: told.toSorted(), body: { ...body, requestId: '' } };
}

/** No key at all, and every kind that opens nothing. */
const strangers = (): Record<string, string>[] => [
  {},
  { apikey: 'wrong-key-wrong-key' },
  { apikey: `${API_KEY.slice(0, -1)}x` },
  { apikey: `${API_KEY}, ${API_KEY}` },
  { apikey: 'x'.repeat(257) },
  { apikey: tokens.deleted },
  { apikey: `sp_aaaaaaaa_${'a'.repeat(40)}` },
  { 'x-api-key': API_KEY },
  { authorization: `Bearer ${API_KEY}` },
  { authorization: `Bearer ${tokens.alpha}` },
];

/** Of them each route meets two; all of them meet the first route, since one place looks at all keys. */
const strangersAt = (name: string): Record<string, string>[] =>
  name === ofInstances[0]?.name || name === ofGateway[0]?.name || name === Object.keys(inboxRows)[0]
    ? strangers()
    : [{}, { apikey: tokens.deleted }];

const table = tableRoutes();
const ofInstances = table.filter(({ access, name }) => access === 'instance' && name.endsWith('/:instance'));
/** With any key. */
const ofNone = table.filter(({ access, name }) => access === 'instance' && !name.endsWith('/:instance'));
const ofGateway = table.filter(({ access }) => access === 'gateway');

it('every route has a row, and every row is a route', () => {
  expect(Object.keys(rows).toSorted()).toEqual(table.map(({ name }) => name).toSorted());
  expect(
    [
      ...Object.keys(rows),
      ...Object.keys(inboxRows),
      ...otherInboxRoutes,
      ...Object.keys(openRoutes),
    ].toSorted(),
  ).toEqual(mountedRoutes().toSorted());
});

describe.for(ofInstances)('$name', ({ name, status }) => {
  it('opens to the gateway’s key and to the instance’s own token, by name and by id', async () => {
    for (const key of ['gateway', 'token']) {
      const {
        name: instance,
        token,
        id,
      } = rows[name]?.ends ? await newInstance() : { name: 'alpha', token: tokens.alpha, id: ids.alpha };
      const apikey = key === 'gateway' ? API_KEY : token;
      for (const path of [instance, id]) {
        const { status: answered } = await ask(name, path, { apikey });
        expect([path, answered]).toEqual([path, rows[name]?.right ?? status]);
      }
    }
  });

  it('refuses everybody else in the same way, whether the instance exists or not', async () => {
    const refused = await ask(name, 'beta', { apikey: tokens.alpha });
    expect(refused.status).toBe(401);
    const others = [
      ask(name, ids.beta, { apikey: tokens.alpha }),
      ask(name, 'nobody', { apikey: tokens.alpha }),
      ...strangersAt(name).flatMap((headers) => [ask(name, 'alpha', headers), ask(name, 'nobody', headers)]),
    ];
    for (const other of await Promise.all(others)) expect(comparable(other)).toEqual(comparable(refused));
  });

  it('tells the gateway’s key alone that an instance does not exist', async () => {
    const { status: missing, body } = await ask(name, 'nobody', { apikey: API_KEY });
    expect([missing, body.code]).toEqual([404, 'instance_not_found']);
  });
});

describe.for(ofNone)('$name', ({ name, status }) => {
  it('opens to the gateway’s key and to every token, and to nobody else', async () => {
    for (const apikey of [API_KEY, tokens.alpha, tokens.beta]) {
      expect((await ask(name, '', { apikey })).status).toBe(status);
    }
    for (const headers of strangersAt(name)) expect((await ask(name, '', headers)).status).toBe(401);
  });
});

describe.for(ofGateway)('$name', ({ name, status }) => {
  it('is for the gateway’s key alone', async () => {
    const { name: instance, token } = await newInstance();
    const refused = await ask(name, instance, { apikey: token });
    expect(refused.status).toBe(401);
    for (const headers of [...strangersAt(name), { apikey: tokens.beta }]) {
      expect(comparable(await ask(name, instance, headers))).toEqual(comparable(refused));
    }
    expect((await ask(name, instance, { apikey: API_KEY })).status).toBe(status);
  });
});

describe.for(Object.entries(inboxRows))('%s', ([name, { right }]) => {
  it('opens to the gateway’s key, the instance’s own token and a session; of another instance it is as if there were none', async () => {
    const session = { authorization: `Bearer ${await newSession()}` };
    for (const headers of [{ apikey: API_KEY }, { apikey: tokens.alpha }, session]) {
      expect((await ask(name, 'alpha', headers)).status).toBe(right);
    }
    const refused = await ask(name, 'alpha', {});
    expect(refused.status).toBe(401);
    for (const headers of strangersAt(name)) {
      expect(comparable(await ask(name, 'alpha', headers))).toEqual(comparable(refused));
    }
    const foreign = await ask(name, 'beta', { apikey: tokens.alpha });
    expect(foreign.status).toBe(404);
    for (const other of [ids.beta, 'nobody']) {
      expect(comparable(await ask(name, other, { apikey: tokens.alpha }))).toEqual(comparable(foreign));
    }
  });
});

async function newSession(): Promise<string> {
  const code = new URL(await gateway.inboxLink()).searchParams.get('code');
  return (await ask('POST /inbox/api/session', '', {}, { body: () => ({ code }) })).body.session;
}

describe('the rest of the inbox', () => {
  it.each(['GET /inbox/api/instances', 'GET /inbox/api/events'])('%s refuses strangers', async (name) => {
    for (const headers of strangers()) expect((await ask(name, '', headers)).status).toBe(401);
  });

  it('shows a token only its own instance, a session and the gateway’s key all of them', async () => {
    const names = async (headers: Record<string, string>): Promise<string[]> =>
      (await ask('GET /inbox/api/instances', '', headers)).body.map(({ name }: { name: string }) => name);
    expect(await names({ apikey: tokens.alpha })).toEqual(['alpha']);
    const session = { authorization: `Bearer ${await newSession()}` };
    for (const headers of [{ apikey: API_KEY }, session]) {
      expect(await names(headers)).toEqual(expect.arrayContaining(['alpha', 'beta']));
    }
  });

  it('a session is opened by a code alone, and opens the inbox alone', async () => {
    for (const code of ['', 'wrong', API_KEY, tokens.alpha, { $ne: '' }]) {
      const { status } = await ask(
        'POST /inbox/api/session',
        '',
        { apikey: API_KEY },
        { body: () => ({ code }) },
      );
      expect([code, status]).toEqual([code, 401]);
    }
    const session = await newSession();
    for (const { name } of table) {
      const { status } = await ask(name, 'alpha', { authorization: `Bearer ${session}` });
      expect([name, status]).toEqual([name, 401]);
    }
    expect((await ask('GET /instance/fetchInstances', '', { apikey: session })).status).toBe(401);
  });
});

it.each(Object.entries(openRoutes))('%s needs no key', async (name, status) => {
  const [method = '', path = ''] = name.split(' ');
  const response = await fetch(`${gateway.url}${path.replace(/:\w+/, 'x')}`, { method, redirect: 'manual' });
  expect(response.status).toBe(status);
});

/** The lease, the reader of events, the webhooks that it looks for, codes that the test makes, and probes. */
const background =
  /:(lease|event-cursor|webhooks|media-expiry)$|:inbox-code:|^(exists|set|time) \{soundpost\}/;

/** Last: of all requests above. A command that has lost its request waits for itself (packages/kit/test/redis/request-budget.test.ts). */
it('A6. each route waits for a Redis that hangs once', () => {
  expect(counted.requests).toBeGreaterThan(mountedRoutes().length);
  expect(counted.ofRequests).toBeGreaterThan(counted.requests);
  expect([...counted.others].filter((command) => !background.test(command))).toEqual([]);
});
