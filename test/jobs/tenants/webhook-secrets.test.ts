/** The secrets that a tenant's webhooks are signed with. */

import { ownKey } from 'soundpost-kit/redis/keys';
import { describe, expect, it } from 'vitest';

import { WebhookSecrets } from '../../../src/jobs/tenants/webhook-secrets.ts';
import { TENANT, useQueue } from '../queue-fixture.ts';

const queue = useQueue();
const store = (key = Buffer.alloc(32, 1)) => new WebhookSecrets(queue().redis, key);
const FORM = /^whsec_[A-Za-z0-9+/]{43}=$/;

describe('a tenant’s secret', () => {
  it('is made when it is first asked for, and stays', async () => {
    const [secret = '', ...more] = await store().of(TENANT);
    expect(secret).toMatch(FORM);
    expect(more).toEqual([]);
    expect(await store().of(TENANT)).toEqual([secret]);
    expect(await store().of('tenant02')).not.toEqual([secret]);
  });

  it('is one, also when several ask first at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => store().of(TENANT)));
    expect(new Set(answers.flat()).size).toBe(1);
  });

  it('signs beside its successor for a day after a rotation', async () => {
    const { redis } = queue();
    const [first] = await store().of(TENANT);
    const second = await store().rotate(TENANT);
    expect(second).toMatch(FORM);
    expect(await store().of(TENANT)).toEqual([second, first]);
    const [sealed, until] =
      (await redis.hget(ownKey('webhook-secret', TENANT), 'replaced'))?.split(':') ?? [];
    expect(Math.abs(Number(until) - Date.now() - 86_400_000)).toBeLessThan(60_000);
    await redis.hset(ownKey('webhook-secret', TENANT), 'replaced', `${sealed}:${Date.now() - 5000}`);
    expect(await store().of(TENANT)).toEqual([second]);
  });

  it('signs until its own day is over, however often it is replaced; five do at most', async () => {
    const secrets = await store().of(TENANT);
    const all = [...secrets];
    for (let nth = 0; nth < 5; nth += 1) all.unshift(await store().rotate(TENANT));
    expect(await store().of(TENANT)).toEqual(all);
    await expect(store().rotate(TENANT)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    expect(await store().of(TENANT)).toEqual(all);
    const key = ownKey('webhook-secret', TENANT);
    const replaced = (await queue().redis.hget(key, 'replaced')) ?? '';
    await queue().redis.hset(key, 'replaced', replaced.replace(/:\d+$/, `:${Date.now() - 5000}`));
    expect(await store().of(TENANT)).toEqual(all.slice(0, -1));
    all.unshift(await store().rotate(TENANT));
    expect(await store().of(TENANT)).toEqual(all.slice(0, -1));
  });

  it('can be rotated before it was ever read', async () => {
    const secret = await store().rotate(TENANT);
    expect(await store().of(TENANT)).toEqual([secret]);
  });

  it('is encrypted where it is stored, each time differently, and readable with our key alone', async () => {
    const { redis } = queue();
    const [secret = ''] = await store().of(TENANT);
    const key = ownKey('webhook-secret', TENANT);
    const stored = (await redis.hget(key, 'current')) ?? '';
    expect(Buffer.from(stored, 'base64').toString('latin1')).not.toContain(secret.slice('whsec_'.length));
    await expect(store(Buffer.alloc(32, 2)).of(TENANT)).rejects.toThrow();
    // A byte that somebody changed.
    const changed = Buffer.from(stored, 'base64');
    changed.writeUInt8(changed.readUInt8(40) ^ 1, 40);
    await redis.hset(key, 'current', changed.toString('base64'));
    await expect(store().of(TENANT)).rejects.toThrow();
  });
});
