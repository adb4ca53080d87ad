/**
 * Who may do what (decisions A6): every route of the table against every kind of caller. The rows are held to the routes, so
 * that a route without a row fails; the columns are the same for all of them.
 */

import { readFile } from 'node:fs/promises';
import { scopes } from 'soundpost-contract/api-keys';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { Bucket } from 'soundpost-testing/bucket';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { routes } from '../../src/api/app.ts';
import type { Access, Route } from '../../src/api/route.ts';
import { signWebhook } from '../../src/followups/post-webhook.ts';
import { deriveSecrets } from '../../src/process/secrets.ts';
import { type Answer, type Ask, type Json, SECRET_KEY, useClips, useService } from './api-fixture.ts';

const clip = useClips('tone.mp4');
const EVENTS_TOKEN = 'the-token-of-another-server';
const service = useService({
  parts: ['worker', 'gateway'],
  environment: { TRUST_PROXY: '1', GATEWAY_EVENTS_TOKEN: EVENTS_TOKEN },
});

/** What the owner has, and a path may name. */
interface Belongings {
  readonly completed: string;
  readonly failed: string;
  readonly batch: string;
  readonly upload: string;
  readonly delivery: string;
  readonly keyId: string;
}

interface Row {
  /** What the owner of everything is answered. */
  readonly right: number;
  /** The rest of a good request. */
  readonly ask?: () => Ask | Promise<Ask>;
  /** What `:jobId` stands for. Default: a completed job. */
  readonly job?: 'completed' | 'failed' | 'new';
  /** What `:uploadId` stands for. Default: one that is there all the time. */
  readonly upload?: 'new' | 'unfinished';
  /** The path names a key, which belongs to nobody. */
  readonly ofService?: true;
}

const ADA = '12025550101';
const TUS = { 'tus-resumable': '1.0.0' };
const extraction = (path = '/tone.mp4'): Json => ({
  source: { type: 'url', url: `http://127.0.0.1:${service().outside.port}${path}` },
  output: { format: 'mp3' },
});
/** Of a job that is soon over. */
const vain = (): Json => extraction('/nothing.mp4');
const hookUrl = (): string => `http://127.0.0.1:${service().outside.port}/hook`;
const signedEvent = (): Ask => {
  const body = JSON.stringify({ event: 'unknown.event' });
  const { gatewayEventsSecret } = deriveSecrets(SECRET_KEY);
  return {
    body,
    headers: {
      'content-type': 'application/json',
      ...signWebhook('id', body, [gatewayEventsSecret], Date.now()),
    },
  };
};

const rows: Readonly<Record<string, Row>> = {
  'POST /v1/extract': { right: 202, ask: () => ({ json: vain() }) },
  'POST /v1/batch': { right: 202, ask: () => ({ json: { jobs: [vain()] } }) },
  // There is no transcriber here.
  'POST /v1/audio/transcriptions': { right: 400 },
  'POST /v1/audio/translations': { right: 400 },
  'GET /v1/models': { right: 200 },
  'GET /v1/batch/:batchId': { right: 200 },
  'POST /v1/uploads': {
    right: 201,
    ask: async () => ({
      body: await readFile(clip('tone.mp4')),
      headers: { 'content-type': 'video/mp4' },
    }),
  },
  'GET /v1/uploads/:uploadId': { right: 200 },
  'PATCH /v1/uploads/:uploadId': {
    right: 204,
    upload: 'unfinished',
    ask: async () => ({
      body: await readFile(clip('tone.mp4')),
      headers: { ...TUS, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
    }),
  },
  'DELETE /v1/uploads/:uploadId': { right: 200, upload: 'new' },
  'GET /v1/status/:jobId': { right: 200 },
  'GET /v1/jobs': { right: 200 },
  'POST /v1/jobs/bulk': {
    right: 200,
    ask: () => ({ json: { action: 'delete', jobs: ['job_0123456789abcdef'] } }),
  },
  'GET /v1/jobs/:jobId': { right: 200 },
  'DELETE /v1/jobs/:jobId': { right: 200, job: 'new' },
  'POST /v1/jobs/:jobId/retry': { right: 202, job: 'failed' },
  'GET /v1/jobs/:jobId/events': { right: 200 },
  'GET /v1/events': { right: 200 },
  'POST /v1/jobs/:jobId/voice-message': {
    right: 202,
    ask: () => ({ json: { instance: 'main', number: ADA } }),
  },
  'GET /v1/download/:jobId': { right: 200 },
  'GET /v1/jobs/:jobId/deliveries': { right: 200 },
  'POST /v1/jobs/:jobId/deliveries/:deliveryId/replay': { right: 202 },
  'POST /v1/jobs/:jobId/destinations/:name/replay': { right: 202 },
  'GET /v1/endpoints': { right: 200 },
  // Without its endpoint.
  'GET /v1/deliveries': { right: 400 },
  'POST /v1/deliveries/resend': { right: 202, ask: () => ({ json: { since: '2026-11-23T14:00:00Z' } }) },
  'POST /v1/webhooks/test': { right: 200, ask: () => ({ json: { url: hookUrl() } }) },
  'GET /v1/webhooks/secret': { right: 200 },
  'POST /v1/webhooks/secret': { right: 200 },
  'GET /v1/keys': { right: 200 },
  'POST /v1/keys': { right: 201, ask: () => ({ json: { name: 'made', scopes: ['admin'] } }) },
  // The id of another key: a key rotates itself only (key-routes.test.ts).
  'POST /v1/keys/:keyId/rotate': { right: 403, ofService: true },
  'DELETE /v1/keys/:keyId': { right: 200, ofService: true },
  'POST /v1/session': {
    right: 200,
    ask: () => ({ json: { key: service().key }, headers: { 'soundpost-console': '1' } }),
  },
  'DELETE /v1/session': { right: 200, ask: () => ({ headers: { 'soundpost-console': '1' } }) },
  'GET /v1/usage': { right: 200 },
  'POST /hooks/gateway': { right: 204, ask: signedEvent },
  'GET /health/live': { right: 200 },
  'GET /health/ready': { right: 200 },
  'GET /openapi.json': { right: 200 },
  'GET /docs': { right: 200 },
};

type KeyedAccess = Exclude<Access, { by: 'public' }>;

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string =>
  `${method.toUpperCase()} ${path}`;
const isKeyed = (route: Route): route is Route & { access: KeyedAccess } => route.access.by !== 'public';
const keyed = routes.filter(isKeyed).map((route) => ({ route, name: nameOf(route) }));
const open = routes.filter((route) => !isKeyed(route)).map((route) => ({ route, name: nameOf(route) }));
const naming = keyed.filter(({ name, route }) => route.path.includes('/:') && !rows[name]?.ofService);

const unknown: Belongings = {
  completed: 'job_0123456789abcdef',
  failed: 'job_0123456789abcdef',
  batch: 'batch_0123456789abcdef',
  upload: 'upl_0123456789abcdef',
  delivery: 'job_0123456789abcdef-webhook',
  keyId: 'nobody00',
};

let mine: Belongings;
/** The owner's key that was revoked. */
let revoked = '';

beforeAll(async () => {
  const { outside } = service();
  await outside.file('tone.mp4', clip('tone.mp4'));
  const hook = outside.hook('hook');
  const destination = { url: outside.on('/bucket', new Bucket().handle) };
  const { jobId: completed } = await service().run({
    ...{ ...extraction(), destination, options: { webhook: hook.url } },
  });
  await hook.got(1);
  const { jobId: failed } = await service().run(vain());
  const deliveries = await service().call('GET', `/v1/jobs/${completed}/deliveries`);
  const made = await service().call('POST', '/v1/batch', { json: { jobs: [vain()] } });
  mine = {
    completed,
    failed,
    batch: made.body.data.batchId,
    upload: await newUpload(),
    delivery: deliveries.body.data.deliveries[0].deliveryId,
    keyId: (await service().newKey()).split('_')[1] ?? '',
  };
  revoked = await service().newKey();
  await service().revokeKey(revoked);
});

async function newUpload(): Promise<string> {
  const body = await readFile(clip('tone.mp4'));
  const headers = { 'content-type': 'video/mp4' };
  return (await service().call('POST', '/v1/uploads', { body, headers })).body.data.file;
}

async function unfinishedUpload(): Promise<string> {
  const { length } = await readFile(clip('tone.mp4'));
  const headers = { ...TUS, 'upload-length': String(length) };
  const { headers: answered } = await service().call('POST', '/v1/uploads', { headers });
  return answered.location?.split('/').at(-1) ?? '';
}

/** What the row's path names of the owner's. */
async function belongings(row: Row): Promise<Belongings> {
  const completed = row.job === 'new' ? (await service().run(vain())).jobId : mine.completed;
  const uploads = { new: newUpload, unfinished: unfinishedUpload };
  return { ...mine, completed, upload: row.upload ? await uploads[row.upload]() : mine.upload };
}

function pathOf(path: string, row: Row, of: Belongings): string {
  return path
    .replace(':jobId', row.job === 'failed' ? of.failed : of.completed)
    .replace(':batchId', of.batch)
    .replace(':uploadId', of.upload)
    .replace(':deliveryId', of.delivery)
    .replace(':name', 'audio')
    .replace(':keyId', of.keyId);
}

const rowOf = (name: string): Row => {
  const row = rows[name];
  if (row === undefined) throw new Error(`the route ${name} has no row in this matrix`);
  return row;
};

let addresses = 0;

/** From an address that nobody else comes from, since wrong keys are counted by address. */
async function call(name: string, of: Belongings, key: string | null, prefix = ''): Promise<Answer> {
  const [method = '', path = ''] = name.split(' ');
  const row = rowOf(name);
  const { headers = {}, ...ask } = (await row.ask?.()) ?? {};
  addresses += 1;
  const from = { 'x-forwarded-for': `198.18.${addresses >> 8}.${addresses & 255}` };
  return service().call(method, prefix + pathOf(path, row, of), {
    ...ask,
    key,
    headers: { ...headers, ...from },
  });
}

/** Everything of an answer but what tells one request, one id or one allowance from another. */
function comparable({ status, headers, bytes }: Answer, ids: Belongings): unknown {
  const differing = ['date', 'x-request-id', 'ratelimit', 'keep-alive'];
  const told = Object.entries(headers).filter(([name]) => !differing.includes(name));
  const body = Object.values(ids).reduce((text, id) => text.replaceAll(id, 'ID'), bytes.toString('latin1'));
  return { status, headers: Object.fromEntries(told.toSorted()), body };
}

/** The same key with another secret. */
const withOtherSecret = (key: string): string => key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');

it('every route has a row, and every row is a route', () => {
  expect(Object.keys(rows).toSorted()).toEqual(routes.map(nameOf).toSorted());
  expect(keyed.length).toBeGreaterThan(15);
  const demanded = new Set(keyed.map(({ route }) => route.access.scope));
  // It opens a field of a request.
  expect(demanded).toEqual(new Set(scopes.filter((scope) => scope !== 'priority')));
});

describe.for(keyed)('$name', ({ name, route }) => {
  it('without a key: 401, also under the prefix', async () => {
    for (const prefix of ['', '/audio-extract']) {
      const { status, body } = await call(name, mine, null, prefix);
      expect([status, body.error.code]).toEqual([401, route.errors ? 'invalid_api_key' : 'UNAUTHORIZED']);
    }
  });

  it('with a wrong, a malformed or a revoked key: 401, the same for all, whatever the path names', async () => {
    const wrong = [withOtherSecret(service().key), 'sp_*', revoked];
    const refusals = await Promise.all(
      wrong.flatMap((key) => [
        call(name, mine, key).then((answer) => comparable(answer, mine)),
        call(name, unknown, key).then((answer) => comparable(answer, unknown)),
      ]),
    );
    expect(refusals[0]).toMatchObject({
      status: 401,
      body: expect.stringContaining('the API key is not valid'),
    });
    for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
  });

  it(`without the scope ${route.access.scope}: 403, whatever the path names; with it alone: none`, async () => {
    const without = await service().newKey({ scopes: scopes.filter((one) => one !== route.access.scope) });
    const refused = await call(name, mine, without);
    expect([refused.status, refused.body.error.code.toUpperCase()]).toEqual([403, 'FORBIDDEN']);
    expect(refused.body.error.message).toContain(route.access.scope);
    expect(comparable(await call(name, unknown, without), unknown)).toEqual(comparable(refused, mine));
    const only = await service().newKey({ scopes: [route.access.scope] });
    expect((await call(name, unknown, only)).status).not.toBe(403);
  });
});

describe.for(naming)('$name', ({ name }) => {
  it('of another tenant: answers exactly as an unknown one, and changes nothing', async () => {
    const theirs = await belongings(rowOf(name));
    const stranger = await service().newKey();
    const foreign = await call(name, theirs, stranger);
    expect(foreign.status).toBe(404);
    expect(comparable(foreign, theirs)).toEqual(comparable(await call(name, unknown, stranger), unknown));
    expect((await call(name, theirs, service().key)).status).toBe(rowOf(name).right);
  });
});

describe.for(keyed.filter((one) => !naming.includes(one)))('$name', ({ name }) => {
  it('answers who may', async () => {
    expect((await call(name, mine, service().key)).status).toBe(rowOf(name).right);
  });
});

describe.for(open)('$name', ({ name }) => {
  it('needs no key, and takes none amiss', async () => {
    for (const key of [null, 'wrong', revoked]) {
      expect((await call(name, mine, key)).status).toBe(rowOf(name).right);
    }
  });
});

describe('an event of another server', () => {
  const bearer = { authorization: `Bearer ${EVENTS_TOKEN}` };
  const post = (path: string, body: Json, headers: Record<string, string> = {}) =>
    service().call('POST', path, {
      key: null,
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  const update = (data: Json): Json => ({ event: 'messages.update', instance: 'theirs', data });
  let redis: Redis;
  beforeAll(() => {
    redis = connectPatiently(service().redis.url);
  });
  afterAll(() => closeRedis(redis));
  const statusOf = (messageId: string): Promise<string | null> =>
    redis.get(ownKey('message-status', messageId));

  it.each([
    ['its token in the query', `/hooks/gateway?token=${EVENTS_TOKEN}`, {}, 204],
    ['its token as Bearer', '/hooks/gateway', bearer, 204],
    ['a wrong token in the query', '/hooks/gateway?token=the-token-of-nobody-else', {}, 401],
    ['a wrong token as Bearer', '/hooks/gateway', { authorization: 'Bearer wrong' }, 401],
    ['no token', '/hooks/gateway', {}, 401],
  ])('with %s', async (what, path, headers, expected) => {
    const keyId = `THEIRS ${what}`;
    const { status } = await post(path, update({ keyId, status: 'READ' }), headers);
    expect(status).toBe(expected);
    expect(await statusOf(keyId)).toBe(expected === 204 ? 'READ' : null);
  });

  it.each([
    ['data.key.id', { key: { id: 'K1', remoteJid: 'x', fromMe: true }, status: 'PLAYED' }, 'K1'],
    ['data.keyId', { keyId: 'K2', remoteJid: 'x', fromMe: true, status: 'PLAYED', instanceId: 'i' }, 'K2'],
    [
      'a list of both',
      [
        { keyId: 'K3', status: 'DELETED' },
        { key: { id: 'K4' }, status: 'PLAYED' },
      ],
      'K4',
    ],
  ])('is understood as %s', async (_what, data, messageId) => {
    expect((await post('/hooks/gateway', update(data), bearer)).status).toBe(204);
    expect(await statusOf(messageId)).toBe('PLAYED');
  });

  it.each([
    ['', 400],
    ['no JSON', 400],
    ['null', 204],
    ['[]', 204],
  ])('that is %j is answered %i', async (body, expected) => {
    const { status } = await service().call('POST', '/hooks/gateway', {
      key: null,
      body,
      headers: { 'content-type': 'application/json', ...bearer },
    });
    expect(status).toBe(expected);
  });

  it('of another kind, or with a status that is none, is taken and dropped', async () => {
    expect((await post('/hooks/gateway', { event: 'messages.upsert', data: {} }, bearer)).status).toBe(204);
    expect((await post('/hooks/gateway', update({ keyId: 'K5', status: 'EDITED' }), bearer)).status).toBe(
      204,
    );
    expect(await statusOf('K5')).toBeNull();
  });
});

it('an event of the gateway has to be signed', async () => {
  const { headers, body } = signedEvent();
  const unsigned = { 'webhook-id': '1', 'webhook-timestamp': '1', 'webhook-signature': 'v1,AAAA' };
  for (const given of [{}, unsigned, { ...headers, 'webhook-id': 'other' }]) {
    const answer = await service().call('POST', '/hooks/gateway', {
      key: null,
      body: body ?? '',
      headers: given,
    });
    expect([answer.status, answer.body.error.code]).toEqual([401, 'UNAUTHORIZED']);
  }
});

it('an event with a wrong token is refused before its body is read, and wrong ones are limited by address', async () => {
  const sent = { event: 'messages.update', data: { keyId: 'K6', status: 'READ' } };
  const post = (token: string, body: string) =>
    service().call('POST', `/hooks/gateway?token=${token}`, {
      key: null,
      body,
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.77' },
    });
  const tooLarge = `{"x":"${'x'.repeat(300 * 1024)}"}`;
  const statuses: number[] = [];
  // The 31st is one more than allowed.
  for (let nth = 0; nth < 31; nth += 1) statuses.push((await post('wrong', tooLarge)).status);
  expect(statuses).toEqual([...Array(30).fill(401), 429]);
  const more = await post('wrong', '{}');
  expect([more.status, Number(more.headers['retry-after']) > 0]).toEqual([429, true]);
  expect((await post(EVENTS_TOKEN, JSON.stringify(sent))).status).toBe(204);
  expect((await post(EVENTS_TOKEN, tooLarge)).status).toBe(413);
});

describe('A stranger does not learn what there is', () => {
  it.each([
    ['GET', '/v1/nothing'],
    ['GET', '/nothing'],
    ['PUT', '/v1/extract'],
    ['GET', '/v1/status/job_1'],
    ['GET', '/v1/status/%ff'],
    ['GET', '/audio-extract/v1/nothing'],
  ])('%s %s answers 401', async (method, path) => {
    const { status, body } = await service().call(method, path, { key: null });
    expect([status, body.error.code]).toEqual([401, 'UNAUTHORIZED']);
  });
});
