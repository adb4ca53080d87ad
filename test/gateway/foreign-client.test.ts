/**
 * A client that others wrote for the public server whose interface this is: the node of n8n, `n8n-nodes-evolution-api`. Its
 * own functions make the requests and read the answers; only what n8n gives them is played: parameters, the address and
 * the key, and a way to send a request.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { resourceOperationsFunctions } from 'n8n-nodes-evolution-api/dist/nodes/EvolutionApi/execute/index.js';
import { fetch } from 'soundpost-testing/http';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Answer,
  API_KEY,
  ada,
  chatMessages,
  hedy,
  makeFolder,
  makeTone,
  startTestGateway,
  type TestGateway,
} from './gateway-fixture.ts';

type Parameters = Readonly<Record<string, unknown>>;
interface Context {
  getNodeParameter(name: string, index: number, preset?: unknown): unknown;
  getCredentials(): Promise<Readonly<Record<string, string>>>;
  /** Of some operations, which answer one result an item. */
  getInputData(): readonly object[];
  continueOnFail(): boolean;
  getNode(): object;
  readonly helpers: { request(options: RequestOptions): Promise<unknown> };
}
/** As the library `request-promise` takes them, which is what n8n offers its nodes. */
interface RequestOptions {
  readonly method: string;
  readonly uri: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}
interface Result {
  json: { success: boolean; data?: Answer['body']; error?: { message: string; details: string } };
}
type Operation = (context: Context) => Promise<Result | Result[]>;

const operations = resourceOperationsFunctions as unknown as Readonly<
  Record<string, Readonly<Record<string, Operation>>>
>;

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;
let audio: string;
let groupJid: string;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
  await makeTone(join(folder.path, 'tone.mp3'), 1);
  audio = (await readFile(join(folder.path, 'tone.mp3'))).toString('base64');
  const { body } = await gateway.call('POST', '/chat/findContacts/main');
  groupJid = body.find(({ isGroup }: { isGroup: boolean }) => isGroup).id;
});

afterAll(async () => {
  await gateway.close();
  await redis.close();
  await folder.remove();
});

/** Runs an operation of the node. Fails when the node says that it failed. */
async function execute(resource: string, operation: string, parameters: Parameters): Promise<Answer['body']> {
  const { json } = await attempt(resource, operation, parameters);
  expect(json).toMatchObject({ success: true });
  return json.data;
}

async function attempt(resource: string, operation: string, parameters: Parameters): Promise<Result> {
  const run = operations[resource]?.[operation];
  if (run === undefined) throw new Error(`the node has no ${resource} ${operation}`);
  const results = await run({
    getNodeParameter(name, _index, preset) {
      const value = name in parameters ? parameters[name] : preset;
      if (value === undefined) throw new Error(`Could not get parameter ${name}`);
      return value;
    },
    getCredentials: async () => ({ 'server-url': gateway.url, apikey: API_KEY }),
    getInputData: () => [{}],
    continueOnFail: () => true,
    getNode: () => ({}),
    helpers: { request: send },
  });
  const [result] = [results].flat();
  if (result === undefined) throw new Error('the node answered nothing');
  return result;
}

async function send({ method, uri, headers, body }: RequestOptions): Promise<unknown> {
  const all = new Headers({ ...headers });
  if (body) all.set('content-type', 'application/json');
  const response = await fetch(uri, {
    method,
    headers: all,
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} - ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

const main = { instanceName: 'main' };

it('sends a text, which is what nearly every client does first', async () => {
  const sent = await execute('messages-api', 'send-text', {
    ...main,
    remoteJid: ada.number,
    messageText: 'Hello.',
    options_message: { delay: 10, quoted: { messageQuoted: { messageId: '' } } },
  });
  expect(sent).toMatchObject({
    key: { remoteJid: ada.jid, fromMe: true },
    message: { conversation: 'Hello.' },
    status: 'PENDING',
  });
});

describe('the eleven operations', () => {
  it('send audio', async () => {
    const sent = await execute('messages-api', 'send-audio', {
      ...main,
      remoteJid: `${ada.number}@s.whatsapp.net`,
      media: audio,
      mimetype: 'audio/mp3',
      fileName: 'tone.mp3',
      options_message: {
        delay: 10,
        quoted: { messageQuoted: { messageId: 'X' } },
        mentions: {
          mentionsSettings: { mentionsEveryOne: false, mentioned: `${hedy.number}, ${ada.number}` },
        },
      },
    });
    expect(sent).toMatchObject({
      key: { remoteJid: ada.jid, fromMe: true },
      message: { audioMessage: { ptt: true, seconds: 1 } },
      status: 'PENDING',
    });
  });

  it('set settings', async () => {
    const answer = await execute('instances-api', 'instance-settings', {
      ...main,
      rejectCall: false,
      msgCall: '',
      groupsIgnore: false,
      alwaysOnline: true,
      readMessages: false,
      syncFullHistory: false,
      readStatus: true,
    });
    expect(answer.settings).toMatchObject({ instanceName: 'main', settings: { always_online: true } });
  });

  it('update a message', async () => {
    const { key } = await execute('messages-api', 'send-audio', {
      ...main,
      remoteJid: ada.number,
      media: audio,
    });
    await execute('chat-api', 'update-message', {
      ...main,
      remoteJid: `${ada.number}@s.whatsapp.net`,
      messageId: key.id,
      text: 'Changed from n8n',
    });
    const last = (await chatMessages(gateway, 'main', ada.jid)).at(-1) as unknown as Answer['body'];
    expect(last.message.audioMessage.caption).toBe('Changed from n8n');
  });

  it('send an invite', async () => {
    const answer = await execute('groups-api', 'send-invite-link', {
      ...main,
      groupJid,
      description: 'Come in',
      numbers: `${ada.number}, ${hedy.number}@s.whatsapp.net`,
    });
    expect(answer).toEqual({ send: true, inviteUrl: expect.stringContaining('/i/') });
    for (const { jid } of [ada, hedy]) {
      const last = (await chatMessages(gateway, 'main', jid)).at(-1);
      expect(JSON.stringify(last)).toContain(answer.inviteUrl);
    }
  });

  it('send a presence', async () => {
    await execute('chat-api', 'send-presence', {
      ...main,
      remoteJid: ada.number,
      presence: 'composing',
      delay: 20,
    });
  });

  it('block and unblock', async () => {
    for (const status of ['block', 'unblock']) {
      await execute('chat-api', 'block-contact', {
        ...main,
        remoteJid: `${hedy.number}@s.whatsapp.net`,
        status,
      });
      const [contact] = await execute('chat-api', 'find-contacts', {
        ...main,
        listAll: false,
        remoteJid: hedy.number,
      });
      expect(contact).toMatchObject({ id: hedy.jid, blocked: status === 'block' });
    }
  });

  it('find contacts', async () => {
    const all = await execute('chat-api', 'find-contacts', { ...main, listAll: true });
    expect(all).toHaveLength(4);
  });

  it('find chats, with and without a message', async () => {
    const search = { ...main, remoteJid: ada.number, page: 1, offset: 10 };
    const [chat] = await execute('chat-api', 'find-chats', { ...search, messageId: '' });
    expect(chat).toMatchObject({ remoteJid: ada.jid, pushName: ada.name });
    const messageId = chat.lastMessage.key.id;
    expect(await execute('chat-api', 'find-chats', { ...search, messageId })).toHaveLength(1);
    expect(await execute('chat-api', 'find-chats', { ...search, remoteJid: hedy.number, messageId })).toEqual(
      [],
    );
    expect(await execute('chat-api', 'find-chats', { ...search, messageId: 'UNKNOWN' })).toEqual([]);
  });

  it('fetch an invite code, make it useless, and enter by the new one', async () => {
    const first = await execute('groups-api', 'fetch-invite-code', { ...main, groupJid });
    const second = await execute('groups-api', 'revoke-invite-code', { ...main, groupJid });
    expect(second).toMatchObject({ revoked: true });
    expect(second.inviteCode).not.toBe(first.inviteCode);
    await gateway.call('POST', '/instance/create', { instanceName: 'guest' });
    const joined = await execute('groups-api', 'join-group', {
      instanceName: 'guest',
      inviteCode: second.inviteCode,
    });
    expect(joined).toEqual({ accepted: true, groupJid });
  });

  it('fetch the members of a group', async () => {
    const { participants } = await execute('groups-api', 'find-participants', { ...main, groupJid });
    expect(participants[0]).toMatchObject({ admin: 'superadmin' });
    expect(participants).toHaveLength(5);
  });

  it('fetch privacy settings', async () => {
    const privacy = await execute('profile-api', 'fetch-privacy-settings', main);
    expect(Object.keys(privacy).toSorted()).toEqual([
      'groupadd',
      'last',
      'online',
      'profile',
      'readreceipts',
      'status',
    ]);
  });
});

describe('instances and webhooks', () => {
  it('are made, listed, connected, logged out and deleted', async () => {
    const made = await execute('instances-api', 'instance-basic', {
      instanceName: 'from-n8n',
      token: 'a-token-of-16-characters',
      number: '4930123456',
      'options_Create_instance.instanceSettings.settings': {
        rejectCall: true,
        msgCall: 'No calls',
        alwaysOnline: false,
      },
    });
    expect(made).toMatchObject({
      // What the node asks for is WhatsApp, which waits to be paired.
      instance: { instanceName: 'from-n8n', transport: 'whatsapp', status: 'close' },
      hash: 'a-token-of-16-characters',
      settings: { reject_call: true },
    });
    const one = await execute('instances-api', 'fetch-instances', { instanceName: 'from-n8n' });
    expect(one).toMatchObject([{ ...made.instance, name: 'from-n8n', connectionStatus: 'close' }]);
    expect((await execute('instances-api', 'fetch-instances', { instanceName: '' })).length).toBeGreaterThan(
      1,
    );
    await execute('instances-api', 'logout-instance', { instanceName: 'from-n8n' });
    await gateway.call('POST', '/instance/create', { instanceName: 'local' });
    await execute('instances-api', 'logout-instance', { instanceName: 'local' });
    for (const operation of ['instance-connect', 'restart-instance']) {
      const connected = await execute('instances-api', operation, { instanceName: 'local' });
      expect(connected.instance.state).toBe('open');
    }
    const gone = await execute('instances-api', 'delete-instance', { instanceName: 'from-n8n' });
    expect(gone).toMatchObject({ status: 'SUCCESS', error: false });
  });

  it('are made with their webhook, or without one', async () => {
    const make = (instanceName: string, webhookUrl: string) =>
      execute('instances-api', 'instance-basic', {
        instanceName,
        token: '',
        number: '',
        'options_Create_instance.webhook.webhookSettings': { webhookUrl, webhookEvents: ['MESSAGES_UPSERT'] },
      });
    const made = await make('with-webhook', 'https://example.com/n8n');
    expect(made.webhook).toMatchObject({
      enabled: true,
      events: ['messages.upsert'],
      secret: expect.any(String),
    });
    const found = await gateway.call('GET', '/webhook/find/with-webhook');
    expect(found.body.webhook).toEqual(made.webhook);
    expect(await make('without-webhook', '')).not.toHaveProperty('webhook');
    const { json } = await attempt('instances-api', 'instance-basic', {
      instanceName: 'refused',
      token: '',
      number: '',
      'options_Create_instance.webhook.webhookSettings': { webhookUrl: 'https://127.0.0.1/' },
    });
    expect(json.error?.details).toContain('webhook.url: ');
    // Nothing was made of what was refused.
    expect(await execute('instances-api', 'fetch-instances', { instanceName: 'refused' })).toEqual([]);
  });

  it('a webhook is set, found and switched off', async () => {
    const set = (enabled: boolean, webhookUrl: string) =>
      execute('events-api', 'webhook', {
        ...main,
        resourceForWebhook: 'setWebhook',
        enabled,
        webhookUrl,
        webhookByEvents: false,
        webhookBase64: false,
        webhookEvents: ['MESSAGES_UPSERT', 'SEND_MESSAGE', 'CONNECTION_UPDATE'],
      });
    const { webhook } = await set(true, 'https://example.com/n8n');
    expect(webhook).toMatchObject({
      enabled: true,
      events: ['messages.upsert', 'send.message', 'connection.update'],
    });
    const found = await execute('events-api', 'webhook', { ...main, resourceForWebhook: 'findWebhook' });
    expect(found.webhook.url).toBe('https://example.com/n8n');
    // The node writes a word for an address that was left empty.
    expect((await set(false, '')).webhook.enabled).toBe(false);
  });
});

it('an error reaches the node with what is wrong', async () => {
  const { json } = await attempt('messages-api', 'send-audio', {
    ...main,
    remoteJid: '4930123456',
    media: audio,
  });
  expect(json.success).toBe(false);
  expect(json.error?.details).toContain('number: nobody on the network has this number');
});
