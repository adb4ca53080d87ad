/** API keys: their form, their rate of failure, and the command that makes them; what they open is in authorisation.test.ts. */
import { join } from 'node:path';
import { ordinaryScopes } from 'soundpost-contract/api-keys';
import { ServiceHome, soundpost } from 'soundpost-testing/service';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../command.ts';
import { type Answer, SECRET_KEY, useService } from './api-fixture.ts';

const service = useService({ parts: [], environment: { TRUST_PROXY: '1' } });

describe('A6. Keys', () => {
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
  const keys = (args: readonly string[], environment: Record<string, string> = {}) =>
    runCommand(['keys', ...args], {
      DATA_DIR: service().dataDir,
      REDIS_URL: service().redis.url,
      SECRET_KEY,
      ...environment,
    });
  const ask = (key: string, path = '/v1/jobs'): Promise<Answer> => service().call('GET', path, { key });

  it('beside a running service: create, list, rotate, revoke', async () => {
    const created = await keys(['create', '--name', 'shop', '--scopes', 'extract,read', '--json']);
    expect(created.code).toBe(0);
    const { id: told, key, ...rest } = JSON.parse(created.said);
    expect(key).toMatch(/^sp_[a-z0-9]{8}_[A-Za-z0-9]{32,64}$/);
    expect(rest).toEqual({ name: 'shop', scopes: ['extract', 'read'], instances: [] });
    const [, id = '', secret = ''] = key.split('_');
    expect(told).toBe(id);
    expect((await ask(key)).status).toBe(200);

    const listed = await keys(['list', '--json']);
    expect(listed.said).not.toContain(secret);
    expect(JSON.parse(listed.said)).toContainEqual({
      id,
      ...rest,
      createdAtMs: expect.any(Number),
      revoked: false,
    });
    expect((await keys(['list'])).said).toContain(`${id}  extract,read  shop`);

    // A new secret is the same tenant, and the old one works on.
    const rotated = await keys(['rotate', id]);
    expect([rotated.code, rotated.said.split('_')[1]]).toEqual([0, id]);
    expect(rotated.said).not.toBe(key);
    const usages = await Promise.all([ask(key, '/v1/usage'), ask(rotated.said, '/v1/usage')]);
    expect(usages.map(({ body }) => body.data.key)).toEqual([
      { id, name: 'shop', scopes: ['extract', 'read'], instances: [] },
      { id, name: 'shop', scopes: ['extract', 'read'], instances: [] },
    ]);

    const revoked = await keys(['revoke', id]);
    expect(revoked.code).toBe(0);
    // At once: the first requests after it.
    expect((await Promise.all([ask(key), ask(rotated.said)])).map(({ status }) => status)).toEqual([
      401, 401,
    ]);
    expect((await keys(['list'])).said).toContain(`${id}  revoked  shop`);
    expect((await keys(['rotate', id])).code).toBe(2);
  });

  it.each<[string[], RegExp]>([
    [['create'], /--name/],
    [['create', '--name', 'x', '--scopes', 'everything'], /--scopes: .*extract/],
    [['revoke', 'nobody00'], /no such key: nobody00/],
    [['rotate', 'nobody00'], /no such key: nobody00/],
    [['revoke'], /missing required argument/],
    [['destroy'], /unknown command/],
  ])('%j is wrong usage: it ends with 2 and says what is wrong', async (args, says) => {
    expect(await keys(args)).toEqual({ code: 2, said: expect.stringMatching(says) });
  });

  it('without a service: what is made is there at the next start of its Redis', async () => {
    const asleep = { DATA_DIR: join(service().dataDir, 'asleep'), REDIS_URL: '', SECRET_KEY: '' };
    const created = await keys(['create', '--name', 'early', '--instances', 'main,other'], asleep);
    expect(created).toMatchObject({ code: 0, said: expect.stringMatching(/^sp_/) });
    const listed = await keys(['list', '--json'], asleep);
    expect(JSON.parse(listed.said)).toMatchObject([
      { name: 'early', scopes: [...ordinaryScopes], instances: ['main', 'other'] },
    ]);
  });

  it('a Redis that is not there ends with 1, a faulty environment with 2', async () => {
    expect((await keys(['list'], { REDIS_URL: 'unix:///nowhere.sock' })).code).toBe(1);
    const faulty = await keys(['list'], { SECRET_KEY: '', API_PORT: 'many' });
    expect(faulty.code).toBe(2);
    expect(faulty.said).toMatch(/API_PORT[\s\S]*SECRET_KEY|SECRET_KEY[\s\S]*API_PORT/);
  });

  it('as processes: the key alone on standard output, and a record of what was done', async () => {
    const home = await ServiceHome.make({ REDIS_URL: service().redis.url, SECRET_KEY });
    const run = async (...args: string[]): Promise<string[]> => {
      const { exited, output } = home.run([...soundpost, 'keys', ...args]);
      expect(await exited).toBe(0);
      return output().trim().split('\n');
    };
    // Records stand on standard error.
    const recordsIn = (lines: string[]): unknown[] =>
      lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
    const created = await run('create', '--name', 'shop', '--scopes', 'read');
    const [key = '', ...more] = created.filter((line) => !line.startsWith('{'));
    const id = key.split('_')[1] ?? '';
    expect(more).toEqual([]);
    expect((await ask(key)).status).toBe(200);
    expect(recordsIn(created)).toMatchObject([{ audit: true, msg: 'key created', key: id }]);
    expect(recordsIn(await run('revoke', id))).toMatchObject([{ msg: 'key revoked', key: id }]);
    await home.remove();
  });
});
