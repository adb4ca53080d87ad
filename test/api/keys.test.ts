/** API keys: their form, their rate of failure, and the command that makes them; what they open is in authorisation.test.ts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodeOf } from '../../src/cli/ending.ts';
import { ordinaryScopes } from '../../src/contract/scopes.ts';
import { ApiKeyConflict } from '../../src/tenants/api-keys.ts';
import { command } from '../cli/in-process.ts';
import { ServiceHome } from '../service.ts';
import { type Answer, SECRET_KEY, useService } from './api-fixture.ts';

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
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'soundpost-keys-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const beside = (): Record<string, string> => ({
    DATA_DIR: folder,
    REDIS_URL: service().redis.url,
    SECRET_KEY,
  });
  const keys = (...args: string[]): ReturnType<typeof command> => command(['keys', ...args], beside());
  const ask = (key: string, path = '/v1/jobs'): Promise<Answer> => service().call('GET', path, { key });

  it('beside a running service: create, list, rotate, revoke', async () => {
    const created = await keys('create', '--name', 'shop', '--scopes', 'extract,read', '--json');
    expect(created.code).toBe(0);
    const { id: told, key, ...rest } = JSON.parse(created.said);
    expect(key).toMatch(/^sp_[a-z0-9]{8}_[A-Za-z0-9]{32,64}$/);
    expect(rest).toEqual({ name: 'shop', scopes: ['extract', 'read'], instances: [] });
    const [, id = '', secret = ''] = key.split('_');
    expect(told).toBe(id);
    expect((await ask(key)).status).toBe(200);

    const listed = await keys('list', '--json');
    expect(listed.said).not.toContain(secret);
    expect(JSON.parse(listed.said)).toContainEqual({
      id,
      ...rest,
      createdAtMs: expect.any(Number),
      revoked: false,
    });
    expect((await keys('list')).said).toContain(`${id}  extract,read  shop`);

    // A new secret is the same tenant, and the old one works on.
    const rotated = await keys('rotate', id);
    expect([rotated.code, rotated.said.split('_')[1]]).toEqual([0, id]);
    expect(rotated.said).not.toBe(key);
    const usages = await Promise.all([ask(key, '/v1/usage'), ask(rotated.said, '/v1/usage')]);
    expect(usages.map(({ body }) => body.data.key)).toEqual([
      { id, name: 'shop', scopes: ['extract', 'read'], instances: [] },
      { id, name: 'shop', scopes: ['extract', 'read'], instances: [] },
    ]);

    const revoked = await keys('revoke', id);
    expect(revoked.code).toBe(0);
    // At once: the first requests after it.
    expect((await Promise.all([ask(key), ask(rotated.said)])).map(({ status }) => status)).toEqual([
      401, 401,
    ]);
    expect((await keys('list')).said).toContain(`${id}  revoked  shop`);
    expect((await keys('rotate', id)).code).toBe(2);
  });

  it.each<[args: string[], said: RegExp]>([
    [['create'], /--name/],
    [['create', '--name', 'x', '--scopes', 'everything'], /--scopes: .*extract/],
    [['revoke', 'nobody00'], /no key nobody00/],
    [['rotate', 'nobody00'], /no key nobody00/],
    [['revoke'], /missing required argument/],
    [['destroy'], /unknown command/],
  ])('%j is wrong usage: it ends with 2 and says what is wrong', async (args, said) => {
    expect(await keys(...args)).toEqual({ code: 2, said: expect.stringMatching(said) });
  });

  it('without a service: the key is there when one starts, and the command finds its Redis', async () => {
    const home = await ServiceHome.make();
    const at = { DATA_DIR: join(home.folder, 'data') };
    const created = await command(['keys', 'create', '--name', 'early', '--instances', 'main,other'], at);
    expect(created.code).toBe(0);
    const { api } = await home.serve();
    expect((await service().call('GET', `${api}/v1/jobs`, { key: created.said })).status).toBe(200);
    const listed = JSON.parse((await command(['keys', 'list', '--json'], at)).said);
    expect(listed).toContainEqual(
      expect.objectContaining({ name: 'early', scopes: [...ordinaryScopes], instances: ['main', 'other'] }),
    );
    await home.remove();
  });

  it('a Redis that is not there ends with 1, a faulty environment with 2', async () => {
    const environment = { ...beside(), REDIS_URL: 'unix:///nowhere.sock' };
    expect((await command(['keys', 'list'], environment)).code).toBe(1);
    const faulty = await command(['keys', 'list'], { ...environment, SECRET_KEY: '', API_PORT: 'many' });
    expect(faulty.code).toBe(2);
    expect(faulty.said).toMatch(/API_PORT[\s\S]*SECRET_KEY|SECRET_KEY[\s\S]*API_PORT/);
  });

  it('a bootstrap key with another secret under the same id ends a process with 2', () => {
    expect(exitCodeOf(new ApiKeyConflict('another secret'))).toBe(2);
  });
});
