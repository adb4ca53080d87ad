/** API keys: their form, their rate of failure, and the command that makes them; what they open is in authorisation.test.ts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ordinaryScopes } from '../../src/contract/scopes.ts';
import { startTestRedis } from '../redis-server.ts';
import { ServiceHome, type Serving } from '../service.ts';
import { type Answer, type Ask, useService } from './api-fixture.ts';

const service = useService({ parts: [], environment: { TRUST_PROXY: '1' } });

describe('A6. Keys', () => {
  it.each([
    ['nothing', ''],
    ['some word', 'secret'],
    ['an unknown id', `sp_aaaaaaaa_${'a'.repeat(40)}`],
    ['too short a secret', 'sp_aaaaaaaa_abc'],
    ['two of them', `sp_aaaaaaaa_${'a'.repeat(40)}, sp_bbbbbbbb_${'b'.repeat(40)}`],
    ['an id that means something to Redis', `sp_*_${'a'.repeat(40)}`],
  ])('%s is no key', async (_what, key) => {
    const { status, body } = await service().call('GET', '/v1/jobs', { key });
    expect([status, body.error.code]).toEqual([401, 'UNAUTHORIZED']);
  });

  it('a key with another secret is none', async () => {
    const key = await service().newKey();
    const other = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
    expect((await service().call('GET', '/v1/jobs', { key: other })).status).toBe(401);
    expect((await service().call('GET', '/v1/jobs', { key })).status).toBe(200);
  });

  it('wrong ones are limited by address, and right ones answered all the same', async () => {
    const ask = (address: string, key: string): Promise<Answer> =>
      service().call('GET', '/v1/jobs', { key, headers: { 'x-forwarded-for': address } });
    const wrong = `sp_aaaaaaaa_${'a'.repeat(40)}`;
    const answers: Answer[] = [];
    for (let n = 0; n < 31; n += 1) answers.push(await ask('203.0.113.7', wrong));
    expect(answers.slice(0, 30).every(({ status }) => status === 401)).toBe(true);
    expect(answers[30]).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } });
    expect(answers[30]?.headers['retry-after']).toMatch(/^[1-9]\d?$/);
    expect((await ask('203.0.113.7', service().key)).status).toBe(200);
    expect((await ask('203.0.113.8', wrong)).status).toBe(401);
    expect((await ask('203.0.113.8', service().key)).status).toBe(200);
  });
});

describe('A6. keys on the command line', () => {
  let home: ServiceHome;
  let serving: Serving;
  beforeAll(async () => {
    home = await ServiceHome.make();
    serving = await home.serve();
  });
  afterAll(() => home.remove());

  async function keys(
    at: ServiceHome,
    args: readonly string[],
    environment = {},
  ): Promise<{ code: number | null; said: string }> {
    const run = at.run([process.execPath, 'src/main.ts', 'keys', ...args], environment);
    const code = await run.exited;
    // What the log has to say of it stands beside.
    const said = run.output().replaceAll(/^\{"level".*\n/gm, '');
    return { code, said: said.trim() };
  }
  const ask = (key: string, path = '/v1/jobs', more: Ask = {}): Promise<Answer> =>
    service().call('GET', `${serving.api}${path}`, { key, ...more });

  it('beside a running service: create, list, rotate, revoke', async () => {
    const created = await keys(home, ['create', '--name', 'shop', '--scopes', 'extract,read', '--json']);
    expect(created.code).toBe(0);
    const { id: told, key, ...rest } = JSON.parse(created.said);
    expect(key).toMatch(/^sp_[a-z0-9]{8}_[A-Za-z0-9]{32,64}$/);
    expect(rest).toEqual({ name: 'shop', scopes: ['extract', 'read'], instances: [] });
    const [, id = '', secret = ''] = key.split('_');
    expect(told).toBe(id);
    expect((await ask(key)).status).toBe(200);

    const listed = await keys(home, ['list', '--json']);
    expect(listed.said).not.toContain(secret);
    expect(JSON.parse(listed.said)).toContainEqual({
      id,
      ...rest,
      createdAtMs: expect.any(Number),
      revoked: false,
    });
    expect((await keys(home, ['list'])).said).toContain(`${id}  extract,read  shop`);

    // A new secret is the same tenant, and the old one works on.
    const rotated = await keys(home, ['rotate', id]);
    expect([rotated.code, rotated.said.split('_')[1]]).toEqual([0, id]);
    expect(rotated.said).not.toBe(key);
    const usages = await Promise.all([ask(key, '/v1/usage'), ask(rotated.said, '/v1/usage')]);
    expect(usages.map(({ body }) => body.data.key)).toEqual([
      { id, name: 'shop', scopes: ['extract', 'read'], instances: [] },
      { id, name: 'shop', scopes: ['extract', 'read'], instances: [] },
    ]);

    const revoked = await keys(home, ['revoke', id]);
    expect(revoked.code).toBe(0);
    // At once: the first requests after it.
    expect((await Promise.all([ask(key), ask(rotated.said)])).map(({ status }) => status)).toEqual([
      401, 401,
    ]);
    expect((await keys(home, ['list'])).said).toContain(`${id}  revoked  shop`);
    expect((await keys(home, ['rotate', id])).code).toBe(2);
  });

  it('wrong usage ends with 2 and says what is wrong', async () => {
    const wrong: [string[], RegExp][] = [
      [['create'], /--name/],
      [['create', '--name', 'x', '--scopes', 'everything'], /--scopes: .*extract/],
      [['revoke', 'nobody00'], /no key nobody00/],
      [['rotate', 'nobody00'], /no key nobody00/],
      [['revoke'], /missing required argument/],
      [['destroy'], /unknown command/],
    ];
    const answers = await Promise.all(wrong.map(([args]) => keys(home, args)));
    for (const [index, { code, said }] of answers.entries()) {
      expect([wrong[index]?.[0], code]).toEqual([wrong[index]?.[0], 2]);
      expect(said).toMatch(wrong[index]?.[1] ?? /^$/);
      expect(said).not.toMatch(/\n\s+at /);
    }
  });

  it('without a service: the key is there when one starts', async () => {
    const asleep = await ServiceHome.make();
    const created = await keys(asleep, ['create', '--name', 'early', '--instances', 'main,other']);
    expect(created.code).toBe(0);
    const listed = JSON.parse((await keys(asleep, ['list', '--json'])).said);
    expect(listed).toMatchObject([
      { name: 'early', scopes: [...ordinaryScopes], instances: ['main', 'other'] },
    ]);
    const { api } = await asleep.serve();
    expect((await service().call('GET', `${api}/v1/jobs`, { key: created.said })).status).toBe(200);
    await asleep.remove();
  });

  it('a Redis that is not there ends with 1, a faulty environment with 2', async () => {
    const environment = { REDIS_URL: 'unix:///nowhere.sock', SECRET_KEY: 'x'.repeat(32) };
    const [away, faulty] = await Promise.all([
      keys(home, ['list'], environment),
      keys(home, ['list'], { ...environment, SECRET_KEY: '', API_PORT: 'many' }),
    ]);
    expect([away.code, faulty.code]).toEqual([1, 2]);
    expect(faulty.said).toMatch(/API_PORT[\s\S]*SECRET_KEY|SECRET_KEY[\s\S]*API_PORT/);
  });

  it('a bootstrap key with another secret under the same id is refused', async () => {
    const redis = await startTestRedis();
    const environment = { REDIS_URL: redis.url, SECRET_KEY: 'x'.repeat(32) };
    const first = home.start('api', environment);
    await first.says(/^API\s+(http\S+)/m);
    const conflict = home.start('api', { ...environment, BOOTSTRAP_API_KEY: `${home.key}x` });
    expect(await conflict.exited).toBe(2);
    expect(conflict.output()).toMatch(/BOOTSTRAP_API_KEY/);
    expect(conflict.output()).not.toContain(home.key);
    first.signal('SIGTERM');
    expect(await first.exited).toBe(0);
    await redis.close();
  });
});
