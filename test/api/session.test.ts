/** A6. The session of the console: who may use it, and how it ends. */
import { closeRedis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { describe, expect, it } from 'vitest';
import { type Answer, type Ask, type Json, useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const service = useService({ parts: [], environment: { CORS_ORIGINS: 'https://friend.example' } });

const CONSOLE = { 'soundpost-console': '1' };
const own = (): string => new URL(service().url).origin;
const port = (): string => new URL(service().url).port;

async function signIn(key: string, headers = {}): Promise<Answer> {
  const ask = { key: null, json: { key }, headers: { ...CONSOLE, origin: own(), ...headers } };
  return service().call('POST', '/v1/session', ask);
}

async function session(key = service().key) {
  const answer = await signIn(key);
  expect(answer.status).toBe(200);
  const cookie = answer.headers['set-cookie']?.split(';')[0] ?? '';
  const ask = (method: string, path: string, { headers, ...more }: Ask = {}): Promise<Answer> =>
    service().call(method, path, { key: null, ...more, headers: { ...CONSOLE, cookie, ...headers } });
  const isGood = async (): Promise<boolean> => (await ask('GET', '/v1/jobs')).status === 200;
  return { answer, cookie, ask, isGood };
}

describe('POST /v1/session', () => {
  it('sets a cookie that scripts and other sites cannot use, named for the port', async () => {
    const { answer } = await session();
    expect(answer.headers['set-cookie']).toMatch(
      new RegExp(
        `^soundpost-session-${port()}=[\\w-]{43}; Max-Age=43200; Path=/; Expires=[^;]+; HttpOnly; SameSite=Strict$`,
      ),
    );
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.body.data.key.id).toBe(service().key.split('_')[1]);
    const leftMs = Date.parse(answer.body.data.expiresAt) - Date.now();
    expect(Math.round(leftMs / 3_600_000)).toBe(12);
  });

  it('over https the cookie is Secure, also where a proxy speaks TLS', async () => {
    const origin = own().replace('http:', 'https:');
    expect((await signIn(service().key, { origin })).headers['set-cookie']).toContain('; Secure;');
  });

  it('keeps neither the key nor the token in Redis', async () => {
    const { cookie } = await session();
    const token = cookie.split('=')[1] ?? '';
    const redis = connectPatiently(service().redis.url);
    try {
      const names = await redis.keys(ownKey('session', '*'));
      const stored = JSON.stringify(await Promise.all(names.map((name) => redis.hgetall(name))));
      expect(names.length).toBeGreaterThan(0);
      expect(names.join() + stored).not.toContain(token);
      expect(names.join() + stored).not.toContain(service().key.split('_')[2]);
      for (const name of names) expect(await redis.ttl(name)).toBeLessThanOrEqual(43_200);
    } finally {
      await closeRedis(redis);
    }
  });

  it('refuses a wrong key as every route does', async () => {
    const { status, body } = await signIn('sp_nobody00_0123456789abcdef0123456789abcdef');
    expect([status, body.error.code]).toEqual([401, 'UNAUTHORIZED']);
  });
});

describe('a session', () => {
  it('does what its key may, in its rates, event streams too', async () => {
    const { ask, cookie } = await session(await service().newKey({ scopes: ['read'] }));
    const listed = await ask('GET', '/v1/jobs', { headers: { origin: own() } });
    expect([listed.status, listed.headers.ratelimit?.slice(0, 6)]).toEqual([200, '"read"']);
    expect((await ask('GET', '/v1/keys')).status).toBe(403);
    const stream = await Stream.ofKey({ url: service().url }, { ...CONSOLE, cookie });
    expect(stream.response.statusCode).toBe(200);
    stream.response.destroy();
  });

  it('ends with DELETE /v1/session, which also takes the cookie back', async () => {
    const { ask, isGood } = await session();
    expect(await isGood()).toBe(true);
    const { status, headers } = await ask('DELETE', '/v1/session');
    expect([status, headers['set-cookie']]).toEqual([
      200,
      expect.stringContaining('Expires=Thu, 01 Jan 1970'),
    ]);
    const after = await ask('GET', '/v1/jobs');
    expect([after.status, after.body.error.message]).toEqual([401, 'the session has ended: sign in again']);
  });

  it('ends with its key', async () => {
    const key = await service().newKey();
    const { isGood } = await session(key);
    await service().revokeKey(key);
    expect(await isGood()).toBe(false);
  });

  it('ends when the secret is replaced elsewhere; the page that replaces it goes on', async () => {
    const key = await service().newKey();
    const [here, there] = [await session(key), await session(key)];
    const rotated = await here.ask('POST', `/v1/keys/${key.split('_')[1]}/rotate`);
    expect(rotated.status).toBe(200);
    expect([await here.isGood(), await there.isGood()]).toEqual([true, false]);
    expect((await signIn(key)).status).toBe(403);
    expect((await signIn(rotated.body.data.key)).status).toBe(200);
  });

  it('of a paused key reads', async () => {
    const key = await service().newKey();
    await service().pauseKey(key);
    expect(await (await session(key)).isGood()).toBe(true);
  });
});

/** What a browser sends with the cookie for a page elsewhere, or might be brought to send. */
const GATEWAY = 'http://127.0.0.1:8081';
const form = 'application/x-www-form-urlencoded';
const ways: readonly [
  what: string,
  method: string,
  path: string,
  headers?: () => Record<string, string>,
  body?: string,
][] = [
  ['a link to the list of jobs', 'GET', '/v1/jobs'],
  ['a link under the prefix of webhooks', 'GET', '/audio-extract/v1/jobs'],
  ['a link to a download', 'GET', '/v1/download/JOB'],
  ['an audio element', 'GET', '/v1/download/JOB', () => ({ range: 'bytes=0-' })],
  ['a link to the keys', 'GET', '/v1/keys'],
  ['a script element', 'GET', '/v1/webhooks/secret'],
  ['a HEAD', 'HEAD', '/v1/jobs/JOB'],
  ['an EventSource', 'GET', '/v1/events', () => ({ accept: 'text/event-stream' })],
  ['an EventSource of one job', 'GET', '/v1/jobs/JOB/events', () => ({ accept: 'text/event-stream' })],
  ['a form', 'POST', '/v1/jobs/JOB/retry', () => ({ origin: GATEWAY, 'content-type': form })],
  [
    'a form of a browser that sends no Origin',
    'POST',
    '/v1/webhooks/secret',
    () => ({ 'content-type': form }),
  ],
  ['a form of our own origin without a script', 'POST', '/v1/webhooks/secret', () => ({ origin: own() })],
  [
    'JSON as plain text',
    'POST',
    '/v1/jobs/bulk',
    () => ({ origin: GATEWAY, 'content-type': 'text/plain' }),
    'BULK',
  ],
  [
    'a form that names another method',
    'POST',
    '/v1/jobs/JOB',
    () => ({ 'x-http-method-override': 'DELETE' }),
  ],
  ['the header in the query', 'GET', '/v1/jobs?Soundpost-Console=1'],
  ['another value of the header', 'GET', '/v1/jobs', () => ({ 'soundpost-console': 'true' })],
  ["the gateway's port with the header", 'GET', '/v1/jobs', () => ({ ...CONSOLE, origin: GATEWAY })],
  ["the gateway's port deletes", 'DELETE', '/v1/jobs/JOB', () => ({ ...CONSOLE, origin: GATEWAY })],
  ['another site with the header', 'GET', '/v1/jobs', () => ({ ...CONSOLE, origin: 'https://evil.example' })],
  ['a sandboxed frame', 'GET', '/v1/jobs', () => ({ ...CONSOLE, origin: 'null' })],
  [
    'an origin that begins like ours',
    'GET',
    '/v1/jobs',
    () => ({ ...CONSOLE, origin: `${own()}.evil.example` }),
  ],
  ['ours as user information', 'GET', '/v1/jobs', () => ({ ...CONSOLE, origin: `${own()}@evil.example` })],
  [
    'another name of this machine',
    'GET',
    '/v1/jobs',
    () => ({ ...CONSOLE, origin: `http://localhost:${port()}` }),
  ],
  ['an origin of CORS_ORIGINS', 'GET', '/v1/jobs', () => ({ ...CONSOLE, origin: 'https://friend.example' })],
  [
    'a forwarded host that nobody forwarded',
    'GET',
    '/v1/jobs',
    () => ({ ...CONSOLE, origin: 'http://evil.example', 'x-forwarded-host': 'evil.example' }),
  ],
  [
    'a name rebound to us',
    'GET',
    '/v1/jobs',
    () => ({ ...CONSOLE, origin: 'http://evil.example', host: 'evil.example' }),
  ],
  [
    'another site signs in',
    'POST',
    '/v1/session',
    () => ({ ...CONSOLE, origin: 'https://evil.example', 'content-type': 'application/json' }),
    'KEY',
  ],
  [
    'a form signs in',
    'POST',
    '/v1/session',
    () => ({ origin: GATEWAY, 'content-type': 'text/plain' }),
    'KEY',
  ],
  ['another site signs out', 'DELETE', '/v1/session', () => ({ ...CONSOLE, origin: 'https://evil.example' })],
];

it.each(ways)('abuse of the session: %s', async (_what, method, path, headers = () => ({}), body) => {
  const key = await service().newKey();
  const source = { type: 'url', url: `http://127.0.0.1:${service().outside.port}/a.mp4` };
  const jobId = await service().submit({ source, output: { format: 'mp3' } }, { key });
  const { cookie, ask } = await session(key);
  const bodies: Record<string, Json> = { BULK: { action: 'delete', jobs: [jobId] }, KEY: { key } };
  const answer = await service().call(method, path.replace('JOB', jobId), {
    key: null,
    headers: { cookie, ...headers() },
    ...(body && { body: JSON.stringify(bodies[body]) }),
  });
  expect([401, 403]).toContain(answer.status);
  expect(answer.headers).not.toHaveProperty('set-cookie');
  expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
  if (method !== 'HEAD') expect(answer.body).toEqual({ success: false, error: expect.any(Object) });
  const jobs = (await ask('GET', '/v1/jobs')).body.data.jobs;
  expect(jobs.map((one: Json) => [one.jobId, one.status])).toEqual([[jobId, 'queued']]);
});

it('a page elsewhere may not send the header', async () => {
  for (const origin of [GATEWAY, 'https://evil.example', 'null']) {
    const headers = {
      origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'soundpost-console',
    };
    const answer = await service().call('OPTIONS', '/v1/jobs', { key: null, headers });
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials');
  }
});
