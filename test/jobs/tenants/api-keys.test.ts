/** API keys from their making to their end. */

import { scopes } from 'soundpost-contract/api-keys';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { admitRequest } from '../../../src/jobs/admission.ts';
import { ApiKeys } from '../../../src/jobs/tenants/api-keys.ts';
import { rotateSecret } from '../../../src/jobs/tenants/rotation.ts';
import { useQueue } from '../queue-fixture.ts';

const queue = useQueue();
const PEPPER = Buffer.alloc(32, 1);
const store = (pepper = PEPPER) => new ApiKeys(queue().redis, pepper);
const wanted = { name: 'the website', scopes: ['extract', 'read'], instances: ['main'] } as const;
const BOOTSTRAP = 'sp_operator_0123456789abcdefghijABCDEFGHIJ01';

describe('what was reported as failed, since Redis hung, is undone once it wakes', () => {
  /** Gives up soon, and does the work while Redis hangs. */
  async function hung(work: (impatient: Redis) => Promise<unknown>): Promise<void> {
    const { server } = queue();
    const impatient = queue().connect('request', server.url, 200);
    await impatient.ping();
    process.kill(server.pid, 'SIGSTOP');
    await expect(work(impatient)).rejects.toThrow('Command timed out');
    process.kill(server.pid, 'SIGCONT');
    // Behind all that was sent before.
    await until('Redis has answered', () => impatient.ping().catch(() => undefined));
  }

  it('a new key', async () => {
    await hung((impatient) => new ApiKeys(impatient, PEPPER).create(wanted));
    expect(await store().list()).toEqual([]);
  });

  it('a new secret', async () => {
    const { redis } = queue();
    await rotateSecret(redis, 'a hash', 'mac', 'first');
    await rotateSecret(redis, 'a hash', 'mac', 'second');
    const before = await redis.hgetall('a hash');
    await hung((impatient) => rotateSecret(impatient, 'a hash', 'mac', 'third'));
    expect(await redis.hgetall('a hash')).toEqual(before);
  });
});

describe('a key', () => {
  it('is known by its text, with its scopes and instances', async () => {
    const text = await store().create(wanted);
    const [, id] = /^sp_([a-z0-9]{8})_[A-Za-z0-9]{40}$/.exec(text) ?? [];
    expect(await store().authenticate(text)).toMatchObject({ id, ...wanted });
    expect(await store().list()).toMatchObject([{ id, ...wanted, revoked: false }]);
  });

  it('is not to be found in what is stored, and is worth nothing under another pepper', async () => {
    const text = await store().create(wanted);
    const [, id = '', secret = ''] = text.split('_');
    const stored = JSON.stringify(await queue().redis.hgetall(ownKey('key', id)));
    expect(stored).not.toContain(secret);
    expect(await store(Buffer.alloc(32, 2)).authenticate(text)).toBeUndefined();
  });

  it('gets the same answer whatever is wrong with it', async () => {
    const text = await store().create(wanted);
    const revoked = await store().create(wanted);
    await store().revoke(revoked.split('_')[1] ?? '');
    const wrong = [
      '',
      'sp_',
      'no key at all',
      text.slice(0, -1),
      `${text}0`,
      text.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a')),
      text.replace(/^sp_......../, 'sp_nobody00'),
      text.toUpperCase(),
      ` ${text}`,
      `sp_________${'_'.repeat(41)}`,
      revoked,
    ];
    expect(await Promise.all(wrong.map((key) => store().authenticate(key)))).toEqual(
      wrong.map(() => undefined),
    );
    expect(await store().authenticate(text)).toBeDefined();
  });

  it('is useless from the moment it is revoked, and stays on the list', async () => {
    const text = await store().create(wanted);
    const id = text.split('_')[1] ?? '';
    expect(await store().revoke(id)).toBe(true);
    expect(await store().authenticate(text)).toBeUndefined();
    expect(await store().rotate(id)).toBeUndefined();
    expect(await store().list()).toMatchObject([{ id, revoked: true }]);
    expect(await store().revoke('nobody00')).toBe(false);
  });

  it('works beside its successor for a day after a rotation', async () => {
    const { redis } = queue();
    const first = await store().create(wanted);
    const id = first.split('_')[1] ?? '';
    const second = (await store().rotate(id)) ?? '';
    expect(second.startsWith(`sp_${id}_`)).toBe(true);
    expect(await store().authenticate(first)).toMatchObject({ id });
    expect(await store().authenticate(second)).toMatchObject({ id, ...wanted });
    const [mac, until] = (await redis.hget(ownKey('key', id), 'replaced'))?.split(':') ?? [];
    expect(Math.abs(Number(until) - Date.now() - 86_400_000)).toBeLessThan(60_000);
    // When the day is over.
    await redis.hset(ownKey('key', id), 'replaced', `${mac}:${Date.now() - 5000}`);
    expect(await store().authenticate(first)).toBeUndefined();
    expect(await store().authenticate(second)).toMatchObject({ id });
    expect(await store().rotate('nobody00')).toBeUndefined();
  });

  it('keeps each secret until its own day is over, five at most', async () => {
    const { redis } = queue();
    const texts = [await store().create(wanted)];
    const id = texts[0]?.split('_')[1] ?? '';
    const rotate = async (): Promise<string> => {
      const text = (await store().rotate(id)) ?? '';
      texts.push(text);
      return text;
    };
    /** Which of the texts are let in, by the store and by a request. */
    const working = async (): Promise<number[]> => {
      const stored = await Promise.all(texts.map((text) => store().authenticate(text)));
      const admitted = await Promise.all(
        texts.map((text) =>
          admitRequest(redis, {
            ...{ claim: store().claim(text), address: '203.0.113.7', policy: 'read', limit: 100, cost: 1 },
          }),
        ),
      );
      const known = (nth: number): boolean => admitted[nth]?.outcome === 'known';
      expect(stored.map((key) => key !== undefined)).toEqual(stored.map((_, nth) => known(nth)));
      return [...stored.keys()].filter(known);
    };
    for (let nth = 0; nth < 5; nth += 1) await rotate();
    expect(await working()).toEqual([0, 1, 2, 3, 4, 5]);
    const refused = await store()
      .rotate(id)
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'RATE_LIMITED' });
    expect(refused).toHaveProperty('retryAfterSeconds', expect.closeTo(86_400, -2));
    expect(await working()).toEqual([0, 1, 2, 3, 4, 5]);
    // When the day of the first one is over, there is room for one more.
    const replaced = (await redis.hget(ownKey('key', id), 'replaced')) ?? '';
    const ended = replaced.replace(/:\d+$/, `:${Date.now() - 5000}`);
    await redis.hset(ownKey('key', id), 'replaced', ended);
    expect(await working()).toEqual([1, 2, 3, 4, 5]);
    await rotate();
    expect(await working()).toEqual([1, 2, 3, 4, 5, 6]);
    await store().revoke(id);
    expect(await working()).toEqual([]);
  });
});

describe('the key that the operator chose', () => {
  it('is made with every scope and instance, once', async () => {
    await store().bootstrap(BOOTSTRAP);
    await store().bootstrap(BOOTSTRAP);
    expect(await store().authenticate(BOOTSTRAP)).toMatchObject({ id: 'operator', scopes, instances: ['*'] });
    expect(await store().list()).toHaveLength(1);
  });

  it('with the id of another key is a conflict and changes nothing', async () => {
    await store().bootstrap(BOOTSTRAP);
    const other = BOOTSTRAP.replace(/01$/, '02');
    await expect(store().bootstrap(other)).rejects.toMatchObject({ name: 'ApiKeyConflict' });
    expect(await store().authenticate(other)).toBeUndefined();
    expect(await store().authenticate(BOOTSTRAP)).toBeDefined();
  });

  it('that was revoked is not brought back by a restart', async () => {
    await store().bootstrap(BOOTSTRAP);
    await store().revoke('operator');
    await expect(store().bootstrap(BOOTSTRAP)).rejects.toThrow('was revoked');
    await expect(store().bootstrap(BOOTSTRAP)).rejects.toMatchObject({ name: 'ApiKeyConflict' });
    expect(await store().authenticate(BOOTSTRAP)).toBeUndefined();
  });

  it('has to have the form of a key', async () => {
    await expect(store().bootstrap('letmein')).rejects.toThrow('must be of the form');
  });
});
