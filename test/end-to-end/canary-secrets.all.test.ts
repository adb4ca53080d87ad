// @module-tag prosody
/**
 * Secrets of every kind are planted in a full run of real processes that write all that they can into their logs: none of
 * them comes out in a log or an answer, and Redis holds in the clear only what is so by design (SECURITY.md).
 */
import { Redis } from 'ioredis';
import { type BucketServer, serveBucket } from 'soundpost-testing/bucket';
import { Client, type Json, receiveWebhooks, type WebhookReceiver } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { DOMAIN, startTestProsody, type TestProsody } from 'soundpost-testing/prosody';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { type RunningProcess, ServiceHome } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routes } from '../../src/api/app.ts';
import {
  sendJson,
  startTranscriber,
  type TranscriberStub,
} from '../followups/transcripts/transcriber-stub.ts';
import { mountedRoutes } from '../gateway/mounted-routes.ts';
import { ada, messagesTo } from './inbox.ts';
import { dumpRedis } from './redis-dump.ts';
import { useVideos } from './videos.ts';

/** Letters and digits alone, so that no encoding changes how they look. */
const canary = (what: string): string => `CANARY${what}5d41402abc4b2a76b9719d911017c592`;

const secrets: Record<string, string> = {
  'root secret': canary('root'),
  'gateway key': canary('gatewaykey'),
  'instance token': canary('token'),
  'token that was refused': canary('badtoken'),
  'XMPP password': canary('password'),
  'XMPP password that was refused': canary('badpassword'),
  'header of an instance’s webhook': canary('header'),
  'query of an instance’s webhook': canary('instancehook'),
  'query of a source': canary('source'),
  'header of a source': canary('sourceheader'),
  'query of a webhook': canary('webhook'),
  'query of a destination': canary('destination'),
  'header of a destination': canary('destinationheader'),
  'query of an audio address': canary('audio'),
  'wrong API key': canary('wrongkey'),
  'token of another server’s events': canary('eventstoken'),
  'key of the transcriber': canary('transcriber'),
};
/** Who asks a good question of the gateway is answered what is his own: the keys of his messages, and his webhook. */
const ownAnswers: Record<string, RegExp> = {
  'media key': /\/inbox\/api\/|\/chat\/findChats\//,
  'query of an instance’s webhook': /\/webhook\/find\//,
  'header of an instance’s webhook': /\/webhook\/find\//,
  'secret of an instance’s webhook': /\/webhook\/find\//,
};
/** What is kept in the clear, and where: the rest may stand nowhere in Redis. */
const keptInClear: Record<string, RegExp> = {
  'query of a source': /:extract:job_[0-9a-f]{16}$|:extract:events$/,
  'query of a webhook': /:(extract|webhook):job_[0-9a-f]{16}\S*$|:(extract|webhook):events$/,
  // An event is told with its message; what delivers it has it until it is told, and for replay.
  'media key': /:gateway:|:gateway-webhook:evt_\S+$/,
};

const ACCOUNT = '12025550111';
const videos = useVideos();
let redis: TestRedis;
let prosody: TestProsody;
let home: ServiceHome;
let web: VideoServer;
let hooks: WebhookReceiver;
let store: BucketServer;
let transcriber: TranscriberStub;
let client: Client;
let api = '';
let gateway = '';
const started: RunningProcess[] = [];
/** Every answer that was got, with what was asked. */
const answers: { asked: string; status: number; text: string }[] = [];
let redisDump: ReadonlyMap<string, string> = new Map();

beforeAll(async () => {
  redis = await startTestRedis();
  prosody = await startTestProsody({ accounts: { [ACCOUNT]: secrets['XMPP password'] ?? '' } });
  web = await serveVideos(videos.folder);
  hooks = await receiveWebhooks((nth) => (nth % 3 === 2 ? 500 : 204));
  store = await serveBucket();
  // Taken once, with tries before it, and then refused.
  store.bucket.answer = (nth) => ({ status: nth < 3 ? 503 : nth === 3 ? 200 : 403 });
  transcriber = await startTranscriber();
  // It repeats what it was asked with: at first it knows no such key, and in the end it believes no such file.
  transcriber.answer = (response, { headers }, nth) =>
    sendJson(response, nth === 1 ? 401 : 400, { error: { message: `wrong: ${headers.authorization}` } });
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: secrets['root secret'] ?? '',
    GATEWAY_API_KEY: secrets['gateway key'] ?? '',
    OUTBOUND_ALLOW: `${web.allow},${hooks.allow},${store.allow},${prosody.outboundAllow}`,
    WEBHOOK_SCHEDULE_SECONDS: '0,1,2',
    GATEWAY_EVENTS_TOKEN: secrets['token of another server’s events'] ?? '',
    TRANSCRIBER_URL: transcriber.url,
    TRANSCRIBER_API_KEY: secrets['key of the transcriber'] ?? '',
    LOG_LEVEL: 'trace',
  });
  secrets['API key'] = home.key.split('_')[2] ?? '';
  const start = (command: string, environment = {}): RunningProcess => {
    const process = home.start(command, environment);
    started.push(process);
    return process;
  };
  api = await start('api').says(/^API\s+(http\S+)/m);
  const addresses = { PUBLIC_URL: api, GATEWAY_EVENTS_URL: `${api}/hooks/gateway` };
  gateway = await start('gateway', addresses).says(/^Gateway\s+(http\S+)/m);
  await start('worker', { ...addresses, GATEWAY_URL: gateway }).says(/^Worker/m);
  client = new Client(api, home.key);
  await fullRun();
  await failures();
  await nonsense();
  await metrics();
  redisDump = await dumpRedis(redis.socketPath);
  await troubleWithRedis();
}, 240_000);

afterAll(async () => {
  await home.remove();
  await store.close();
  await transcriber.close();
  await hooks.close();
  await web.close();
  await prosody.close();
  await redis.close();
});

async function ask(
  url: string,
  init: RequestInit & { headers?: Record<string, string> } = {},
): Promise<Json> {
  const response = await fetch(url, init);
  const text = await response.text();
  answers.push({ asked: `${init.method ?? 'GET'} ${url}`, status: response.status, text });
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const json = (method: string, body: unknown, headers: Record<string, string>): Json => ({
  method,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});
const askApi = (method: string, path: string, body?: unknown, key = home.key): Promise<Json> =>
  ask(
    api + path,
    body === undefined ? { method, headers: { 'x-api-key': key } } : json(method, body, { 'x-api-key': key }),
  );
const askGateway = (
  method: string,
  path: string,
  body?: unknown,
  key = secrets['gateway key'] ?? '',
): Promise<Json> =>
  ask(
    gateway + path,
    body === undefined ? { method, headers: { apikey: key } } : json(method, body, { apikey: key }),
  );

const source = (name: string): object => ({
  type: 'url',
  url: `${web.url(name)}?X-Signature=${secrets['query of a source']}`,
  headers: { Authorization: `Bearer ${secrets['header of a source']}` },
});
const webhook = (): string => `${hooks.url}?token=${secrets['query of a webhook']}`;
const destination = (address = store.url): object => ({
  url: `${address}/talk.mp3?X-Signature=${secrets['query of a destination']}`,
  headers: { Authorization: `Bearer ${secrets['header of a destination']}` },
});
const voiceMessage = { instance: 'main', number: ada.number };

async function createXmpp(instanceName: string, password: string | undefined): Promise<void> {
  await askGateway('POST', '/instance/create', {
    instanceName,
    transport: 'xmpp',
    connection: { jid: `${ACCOUNT}@${DOMAIN}`, password, service: `xmpp://127.0.0.1:${prosody.port}` },
  });
}

/** Everything once as it should go. */
async function fullRun(): Promise<void> {
  const { body } = await client.call('GET', '/v1/webhooks/secret');
  secrets['webhook secret'] = body.data.secret.slice('whsec_'.length);
  const rotated = await client.call('POST', '/v1/webhooks/secret');
  secrets['rotated webhook secret'] = rotated.body.data.secret.slice('whsec_'.length);

  await createXmpp('right', secrets['XMPP password']);
  await until('the account is connected', async () => {
    const state = await askGateway('GET', '/instance/connectionState/right');
    return state.instance.state === 'open';
  });
  await fetch(
    `${gateway}/instance/create`,
    json(
      'POST',
      { instanceName: 'second', token: secrets['instance token'] },
      { apikey: secrets['gateway key'] ?? '' },
    ),
  );
  await askGateway('GET', '/instance/connectionState/second', undefined, secrets['instance token']);
  const set = await fetch(
    `${gateway}/webhook/set/main`,
    json(
      'POST',
      {
        webhook: {
          url: `${hooks.url}?token=${secrets['query of an instance’s webhook']}`,
          headers: { Authorization: `Bearer ${secrets['header of an instance’s webhook']}` },
        },
      },
      { apikey: secrets['gateway key'] ?? '' },
    ),
  );
  const { webhook: kept } = (await set.json()) as Json;
  secrets['secret of an instance’s webhook'] = kept.secret.slice('whsec_'.length);

  const { data } = await askApi('POST', '/v1/extract', {
    source: source('talk.mp4'),
    output: { format: 'mp3' },
    options: { webhook: webhook(), voiceMessage },
    destination: destination(),
  });
  const job = await client.completed(data.jobId);
  await until('the file is put', async () => {
    const { body: now } = await client.call('GET', `/v1/jobs/${data.jobId}`);
    return now.data.destination.status === 'completed';
  });
  secrets['signature of an address'] = new URL(job.outputFile.url).searchParams.get('signature') ?? '';
  await ask(job.outputFile.url.replace(/signature=./, 'signature=x'));
  await (await fetch(job.outputFile.url)).arrayBuffer();
  await until('the voice message has arrived', async () => {
    const { body: now } = await client.call('GET', `/v1/jobs/${data.jobId}`);
    return now.data.voiceMessage.messageStatus === 'DELIVERY_ACK';
  });
  const [message] = await messagesTo(gateway, ada.jid, { apikey: secrets['gateway key'] ?? '' });
  secrets['media key'] = message.message.audioMessage.mediaKey;
  await hooks.notifications(data.jobId, 'job.completed');
  await hooks.notifications(data.jobId, 'voice.updated');
  await until('the instance’s webhook has told of the message', () =>
    hooks.received.some(({ text }) => text.includes(secrets['media key'] ?? '-')),
  );
  for (const path of ['/v1/jobs', `/v1/jobs/${data.jobId}/events`, `/v1/jobs/${data.jobId}/deliveries`]) {
    const text = await (await fetch(api + path, { headers: { 'x-api-key': home.key } })).text();
    answers.push({
      asked: path,
      status: 200,
      text: text.replaceAll(secrets['signature of an address'] ?? '-', ''),
    });
  }
  for (const args of [['create', '--name', 'x'], ['list'], ['rotate', home.key.split('_')[1] ?? '']]) {
    const run = home.run([process.execPath, 'src/main.ts', 'keys', ...args]);
    await run.exited;
    const made = /sp_[a-z0-9]{8}_([A-Za-z0-9]+)/.exec(run.output())?.[1];
    if (made !== undefined) secrets[`API key of keys ${args[0]}`] = made;
  }
}

/** What goes wrong with a secret in hand. */
async function failures(): Promise<void> {
  const closed = 'http://127.0.0.1:9';
  const submitted = await Promise.all(
    [
      { source: source('missing.mp4'), options: { webhook: webhook() } },
      { source: source('talk.mp4'), output: { format: 'mp3', audioTrack: 7 } },
      { source: source('talk.mp4'), destination: destination() },
      { source: source('missing.mp4'), output: { format: 'mp3', destination: destination() } },
      { source: source('talk.mp4'), options: { voiceMessage: { ...voiceMessage, instance: 'nobody' } } },
      { source: source('talk.mp4'), options: { webhook: webhook().replace(/^http:/, 'https:') } },
    ].map((job) => askApi('POST', '/v1/extract', { output: { format: 'mp3' }, ...job })),
  );
  for (const bad of [
    { source: { type: 'url', url: `${closed}/?k=${secrets['query of a source']}` } },
    { source: { type: 'url', url: `http://user:${secrets['query of a source']}@example.com/` } },
    { source: source('talk.mp4'), options: { webhook: `${closed}/?k=${secrets['query of a webhook']}` } },
    { source: source('talk.mp4'), destination: destination(closed) },
  ]) {
    await askApi('POST', '/v1/extract', { output: { format: 'mp3' }, ...bad });
  }
  await askApi('POST', '/v1/webhooks/test', { url: `${closed}/?k=${secrets['query of a webhook']}` });
  await askApi('POST', '/v1/webhooks/test', {
    url: `${web.url('nothing')}?k=${secrets['query of a webhook']}`,
  });
  await askApi('POST', `/hooks/gateway?token=${secrets['token of another server’s events']}`, {
    event: 'messages.update',
    data: { keyId: 'THEIRS', status: 'READ' },
  });
  await askApi('GET', '/v1/jobs', undefined, `sp_aaaaaaaa_${secrets['wrong API key']}`);
  await askGateway('GET', '/instance/fetchInstances', undefined, secrets['token that was refused']);
  await createXmpp('wrong', secrets['XMPP password that was refused']);
  await until('the server has refused the password', () =>
    /not-authorized|refused/i.test(started[1]?.output() ?? ''),
  );
  for (const audio of [web.url('missing'), closed]) {
    await askGateway('POST', '/message/sendMessengerAudio/main', {
      number: ada.number,
      audio: `${audio}?k=${secrets['query of an audio address']}`,
    });
  }
  const { data: spoken } = await askApi('POST', '/v1/extract', {
    source: source('talk.mp4'),
    outputs: [
      { name: 'full', format: 'mp3' },
      { name: 'words', format: 'transcript' },
    ],
    options: { webhook: webhook() },
  });
  await until('the transcriber has refused', async () => {
    const { body: now } = await client.call('GET', `/v1/jobs/${spoken.jobId}`);
    return now.data.transcripts?.[0].status === 'failed';
  });
  await ask(`${api}/v1/jobs/${spoken.jobId}`, { headers: { 'x-api-key': home.key } });
  await hooks.notifications(spoken.jobId, 'transcript.updated');
  await until('the file that is refused is refused', () =>
    store.bucket.puts.some(({ status }) => status === 403),
  );
  await until('the jobs have ended', async () => {
    const states = await Promise.all(
      submitted.filter((one) => one.success).map(({ data }) => client.call('GET', `/v1/jobs/${data.jobId}`)),
    );
    return states.every(({ body }) => body.data.finishedAt !== null);
  });
}

/** Every route with bodies that it cannot want, and every secret in them and in the query. */
async function nonsense(): Promise<void> {
  const all = Object.values(secrets);
  const bodies = [
    `{"source": "${all.join(' ')}`,
    JSON.stringify(Object.fromEntries(all.map((secret, index) => [`field${index}`, secret]))),
    JSON.stringify({
      source: { type: 'url', url: all[0] },
      output: { format: all[1] },
      url: all[2],
      number: all[3],
    }),
    JSON.stringify(all),
    all.join('&'),
  ];
  const query = `?status=${all.join(',')}&token=${all.join(',')}`;
  const targets = [
    ...routes.map(({ method, path }) => [method.toUpperCase(), api + path] as const),
    ...mountedRoutes().map((route) => {
      const [method = '', path = ''] = route.split(' ');
      return [method, gateway + path] as const;
    }),
  ].filter(([, url]) => !/events|webhooks\/secret|instance\/delete|instance\/logout|webhook\/set/.test(url));
  for (const [method, url] of targets) {
    const concrete = url
      .replace(':instance', 'main')
      .replace(':jobId', 'job_0123456789abcdef')
      .replaceAll(/\/:\w+/g, '/x');
    for (const body of method === 'GET' ? [null] : bodies) {
      for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
        const headers = { 'x-api-key': home.key, apikey: secrets['gateway key'] ?? '', 'content-type': type };
        await ask(concrete + query, { method, headers, body });
      }
    }
  }
}

/** What each process counts, of all that has happened until now. */
async function metrics(): Promise<void> {
  const worker = /^Worker .*(http:\S+)\/health/m.exec(started[2]?.output() ?? '')?.[1];
  for (const url of [api, gateway, worker]) {
    const text = await ask(`${url}/metrics`);
    expect(text).toContain('soundpost_');
  }
}

/** Redis is frozen, or refuses commands that carry secrets: clients attach those commands to the errors that they throw. */
async function troubleWithRedis(): Promise<void> {
  const secretly = (): Promise<Json> =>
    askApi('POST', '/v1/extract', {
      source: source('talk.mp4'),
      output: { format: 'mp3' },
      options: { webhook: webhook() },
      destination: destination(),
    });
  const admin = new Redis(redis.socketPath);
  // A job's place can be reserved, but the job itself not be written.
  const reserving = ['prioritized', 'active', 'delayed', 'wait'].map((key) => `~*:extract:${key}`);
  await admin.call('ACL', 'SETUSER', 'default', 'resetkeys', '~*:sp:*', ...reserving);
  expect((await secretly()).error.code).toBe('INTERNAL_ERROR');
  await admin.call('ACL', 'SETUSER', 'default', 'allkeys');
  admin.disconnect();
  process.kill(redis.pid, 'SIGSTOP');
  try {
    const answered = await Promise.all([
      secretly(),
      askApi('POST', '/v1/webhooks/secret'),
      askGateway('GET', '/instance/fetchInstances', undefined, secrets['instance token']),
      createXmpp('late', secrets['XMPP password']),
    ]);
    expect(answered[0].error.code).toBe('SERVICE_UNAVAILABLE');
    expect(answered[2].code).toBe('service_unavailable');
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
}

const found = (text: string): string[] =>
  Object.entries(secrets)
    .filter(([, secret]) => text.includes(secret))
    .map(([what]) => what);

it('secrets of every kind were planted, and every one is long enough to be told from chance', () => {
  expect(Object.keys(secrets)).toEqual(
    expect.arrayContaining([
      'API key',
      'webhook secret',
      'media key',
      'signature of an address',
      'API key of keys rotate',
    ]),
  );
  for (const [what, secret] of Object.entries(secrets)) {
    expect([what, secret.length]).toEqual([what, expect.toSatisfy((length: number) => length >= 20)]);
  }
});

describe('a full run', () => {
  it('writes no secret into a log', async () => {
    const all = () => started.map((one) => one.output());
    // They do write what they have to say, among it that Redis refused commands that carry secrets, and did not answer.
    for (const trouble of ['EXECABORT', 'Command timed out']) {
      await until(`a log tells of ${trouble}`, () => all().join('\n').includes(trouble));
    }
    const logs = all();
    for (const log of logs) expect(log.length).toBeGreaterThan(100);
    const lines = logs.join('\n').split('\n');
    expect(lines.filter((line) => found(line).length > 0)).toEqual([]);
    expect(logs.join('\n')).not.toMatch(/[?&]X-Signature|[?&]token=/);
  });

  it('answers no secret, but to who asks for his own', () => {
    expect(answers.length).toBeGreaterThan(500);
    expect(answers.filter(({ status }) => status >= 400).length).toBeGreaterThan(300);
    const leaks = answers.flatMap(({ asked, status, text }) =>
      found(text)
        .filter((what) => status >= 400 || !ownAnswers[what]?.test(asked.split('?')[0] ?? ''))
        .map((what) => `${what}: ${asked.split('?')[0]}`),
    );
    expect(leaks).toEqual([]);
  });

  it('tells receivers of webhooks nothing but the signed address of the result', () => {
    expect(hooks.received.length).toBeGreaterThan(3);
    const told = hooks.received.flatMap(({ text }) => found(text));
    expect(new Set(told)).toEqual(new Set(['signature of an address', 'media key']));
  });

  it('leaves in Redis what is meant to be there, and nothing else', () => {
    expect(redisDump.size).toBeGreaterThan(30);
    const misplaced = [...redisDump].flatMap(([key, content]) =>
      found(`${key}\n${content}`)
        .filter((what) => !keptInClear[what]?.test(key))
        .map((what) => `${what} in ${key}`),
    );
    expect(misplaced).toEqual([]);
    for (const what of Object.keys(keptInClear)) {
      expect([what, [...redisDump.values()].some((content) => found(content).includes(what))]).toEqual([
        what,
        true,
      ]);
    }
  });
});
