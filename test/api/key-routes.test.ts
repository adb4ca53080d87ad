/** A4, A6. /v1/keys: keys that are managed over HTTP; who may is in authorisation.test.ts. */

import { closeRedis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { expect, it } from 'vitest';
import { type Answer, type Ask, useService } from './api-fixture.ts';

const service = useService({ parts: [] });

const call = (method: string, path: string, ask?: Ask): Promise<Answer> => service().call(method, path, ask);
const make = (json: object, ask: Ask = {}): Promise<Answer> => call('POST', '/v1/keys', { ...ask, json });
const idOf = (key: string): string => key.split('_')[1] ?? '';
const listed = async (id: string, ask?: Ask) =>
  (await call('GET', '/v1/keys', ask)).body.data.keys.find((key: { id: string }) => key.id === id);
/** What the key may do by now. */
const statusWith = async (key: string): Promise<number> => (await call('GET', '/v1/jobs', { key })).status;

it('a key is made, shown once, listed, rotates itself and is revoked', async () => {
  const made = await make({ name: 'Straße 7', scopes: ['read', 'admin', 'read'], instances: ['main'] });
  expect([made.status, made.headers['cache-control']]).toEqual([201, 'no-store']);
  const { key, ...state } = made.body.data;
  expect(key).toMatch(/^sp_[a-z0-9]{8}_[A-Za-z0-9]{32,64}$/);
  expect(state).toEqual({
    id: idOf(key),
    name: 'Straße 7',
    scopes: ['read', 'admin'],
    instances: ['main'],
    status: 'active',
    createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(await statusWith(key)).toBe(200);
  const all = await call('GET', '/v1/keys');
  expect(all.headers['cache-control']).toBe('no-store');
  expect(all.body.data.keys[0]).toEqual(state);
  expect(all.bytes.toString()).not.toContain(key.split('_')[2]);

  const rotated = await call('POST', `/v1/keys/${state.id}/rotate`, { key });
  expect([rotated.status, rotated.headers['cache-control']]).toEqual([200, 'no-store']);
  expect(rotated.body.data).toEqual({ ...state, key: expect.not.stringContaining(key) });
  expect(idOf(rotated.body.data.key)).toBe(state.id);
  expect([await statusWith(key), await statusWith(rotated.body.data.key)]).toEqual([200, 200]);

  const revoked = await call('DELETE', `/v1/keys/${state.id}`);
  expect([revoked.status, revoked.body]).toEqual([
    200,
    { success: true, data: { ...state, status: 'revoked' } },
  ]);
  expect([await statusWith(key), await statusWith(rotated.body.data.key)]).toEqual([401, 401]);
  expect(await listed(state.id)).toEqual({ ...state, status: 'revoked' });
  for (const [method, path] of [
    ['DELETE', ''],
    ['POST', '/rotate'],
  ] as const) {
    expect((await call(method, `/v1/keys/${state.id}${path}`)).status).toBe(404);
  }
});

it.each([
  ['a scope', { scopes: ['read', 'download'] }, 'download'],
  ['the scope admin', { scopes: ['admin', 'voice'] }, 'voice'],
  ['an instance', { scopes: ['read'], instances: ['main', 'other'] }, 'other'],
  ['any instance', { scopes: ['read'], instances: ['*'] }, '*'],
])('no key gives %s that it lacks, nor sees or changes a key that has it', async (_what, wanted, named) => {
  const key = await service().newKey({ scopes: ['admin', 'read'], instances: ['main'] });
  const count = (await call('GET', '/v1/keys')).body.data.keys.length;
  const made = await make({ name: 'more', ...wanted }, { key });
  expect([made.status, made.body.error.code]).toEqual([403, 'FORBIDDEN']);
  expect(made.body.error.message).toContain(` ${named} and cannot grant it`);
  expect((await call('GET', '/v1/keys')).body.data.keys).toHaveLength(count);

  const strong = (await make({ name: 'strong', ...wanted })).body.data;
  const path = `/v1/keys/${strong.id}`;
  expect(await listed(strong.id, { key })).toBeUndefined();
  expect((await call('POST', `${path}/rotate`, { key })).status).toBe(404);
  expect((await call('DELETE', path, { key })).status).toBe(404);
  expect(await listed(strong.id)).toMatchObject({ status: 'active' });
});

it('no key gets the secret of another one, however little that may do; it may revoke it', async () => {
  const key = await service().newKey({ scopes: ['admin', 'read'] });
  const { id, key: secret } = (await make({ name: 'weak', scopes: ['read'] }, { key })).body.data;
  expect(await listed(id, { key })).toMatchObject({ name: 'weak' });
  for (const asking of [key, service().key]) {
    const { status, body } = await call('POST', `/v1/keys/${id}/rotate`, { key: asking });
    expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
  }
  expect(await statusWith(secret)).toBe(200);
  expect((await call('DELETE', `/v1/keys/${id}`, { key })).status).toBe(200);
  expect(await statusWith(secret)).toBe(401);
});

it('a key may rotate and revoke itself, and is told so', async () => {
  const key = await service().newKey({ scopes: ['admin'] });
  const rotated = await call('POST', `/v1/keys/${idOf(key)}/rotate`, { key });
  expect(rotated.status).toBe(200);
  const revoked = await call('DELETE', `/v1/keys/${idOf(key)}`, { key: rotated.body.data.key });
  expect([revoked.status, revoked.body.message]).toEqual([200, expect.stringContaining('revoked itself')]);
  expect(await statusWith(key)).toBe(401);
});

it('a secret that was replaced opens what it opened, and no longer changes keys', async () => {
  const key = await service().newKey({ scopes: ['admin', 'read'] });
  const rotated = (await call('POST', `/v1/keys/${idOf(key)}/rotate`, { key })).body.data.key;
  expect(await statusWith(key)).toBe(200);
  expect((await make({ name: 'kept', scopes: ['admin'] }, { key })).status).toBe(403);
  expect((await call('POST', `/v1/keys/${idOf(key)}/rotate`, { key })).status).toBe(403);
  expect((await call('DELETE', `/v1/keys/${idOf(key)}`, { key })).status).toBe(403);
  expect((await make({ name: 'mine', scopes: ['admin'] }, { key: rotated })).status).toBe(201);
});

it('a paused key looks at keys and changes none', async () => {
  const key = await service().newKey();
  await service().pauseKey(key);
  expect(await listed(idOf(key), { key })).toMatchObject({ status: 'paused' });
  for (const [method, path] of [
    ['POST', ''],
    ['POST', `/${idOf(key)}/rotate`],
    ['DELETE', `/${idOf(key)}`],
  ]) {
    const json = { name: 'x', scopes: ['read'] };
    expect((await call(String(method), `/v1/keys${path}`, { key, json })).status).toBe(403);
  }
  expect(await listed(idOf(key))).toMatchObject({ status: 'paused' });
});

it.each([
  [{}, /name.*scopes/s],
  [{ name: '', scopes: ['read'] }, /name/],
  [{ name: ' ', scopes: ['read'] }, /name/],
  [{ name: '\u001b[2J', scopes: ['read'] }, /name/],
  [{ name: 'x'.repeat(101), scopes: ['read'] }, /name/],
  [{ name: 'x', scopes: [] }, /scopes/],
  [{ name: 'x', scopes: ['all'] }, /scopes\[0\]/],
  [{ name: 'x', scopes: ['read'], instances: ['a,b'] }, /instances\[0\]/],
  [{ name: 'x', scopes: ['read'], secret: 'mine' }, /secret/],
])('%j is no request for a key', async (json, details) => {
  const { status, body } = await make(json);
  expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
  expect(body.error.details).toMatch(details);
});

it('an Idempotency-Key stores no secret: each request makes a key of its own', async () => {
  const redis = connectPatiently(service().redis.url);
  const ask = { headers: { 'idempotency-key': 'once' } };
  const [one, other] = [
    await make({ name: 'x', scopes: ['read'] }, ask),
    await make({ name: 'x', scopes: ['read'] }, ask),
  ];
  expect(one.body.data.id).not.toBe(other.body.data.id);
  expect(await redis.keys(ownKey('idempotency', '*'))).toEqual([]);
  await closeRedis(redis);
});
