/** Records that this version cannot read: each is shown as such, breaks nothing beside it, and can be deleted. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endpointOf, pendingKey, sentKey } from '../../src/followups/endpoints.ts';
import { jobKey, queueKey } from '../jobs/bullmq-keys.ts';
import { type Answer, type Json, useClips, useService } from './api-fixture.ts';

const ADMIN_KEY = 'the key of these tests';
const service = useService({ parts: ['worker', 'gateway'], environment: { ADMIN_KEY } });
const clip = useClips('tone.mp4');

let redis: Redis;
let key = '';
let tenant = '';
let good: Json;
const ids: Record<string, string> = {};

const call = async (method: string, path: string, json?: unknown, by = key): Promise<Answer> => {
  const answer = await service().call(method, path, { key: by, ...(json === undefined ? {} : { json }) });
  expect(answer.status, answer.bytes.toString()).toBeLessThan(500);
  return answer;
};

type Poison = (hash: string) => Promise<unknown>;
const setting =
  (field: string, value: string): Poison =>
  (hash) =>
    redis.hset(hash, field, value);
const without =
  (...fields: string[]): Poison =>
  (hash) =>
    redis.hdel(hash, ...fields);
const editing =
  (field: string, change: object): Poison =>
  async (hash) =>
    redis.hset(
      hash,
      field,
      JSON.stringify({ ...JSON.parse((await redis.hget(hash, field)) ?? ''), ...change }),
    );

/** Of a completed job, unless the name says otherwise. */
const poisons: Readonly<Record<string, Poison>> = {
  'a request that is no JSON': setting('data', '{"version":1,"ten'),
  'a request of the next edition': editing('data', { version: 2 }),
  'a request with a field that nobody knows': editing('data', { speed: 2 }),
  'a request of null': setting('data', 'null'),
  'no request': without('data'),
  'no time': without('timestamp'),
  'an end that is no time': setting('finishedOn', 'soon'),
  'a result that is no JSON': setting('returnvalue', '{'),
  'a result of the next edition': editing('returnvalue', { version: 2 }),
  'a result without its files': editing('returnvalue', { outputFile: undefined }),
  'a text in place of a hash': (hash) => redis.multi().del(hash).set(hash, 'x').exec(),
  'a list in place of a hash': (hash) => redis.multi().del(hash).rpush(hash, 'x').exec(),
  'options that are no JSON and a request that is none': async (hash) =>
    redis.hset(hash, { opts: '{', data: '{', progress: '{' }),
};

beforeAll(async () => {
  redis = connectPatiently(service().redis.url);
  key = await service().newKey();
  tenant = key.split('_')[1] ?? '';
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  good = await service().run({ source: { type: 'url', url }, output: { format: 'mp3' } }, { key });
  await Object.entries(poisons).reduce(async (before, [name, poison], nth) => {
    await before;
    const jobId = `job_${(nth + 1).toString(16).padStart(16, '0')}`;
    ids[name] = jobId;
    await clone(good.jobId, jobId, nth);
    await poison(jobKey('extract', jobId));
  }, Promise.resolve());
});
afterAll(() => closeRedis(redis));

/** A completed job under another id, older by some seconds, with a file of its own. */
async function clone(from: string, jobId: string, seconds: number): Promise<void> {
  const hash = jobKey('extract', jobId);
  await redis.copy(jobKey('extract', from), hash);
  const { returnvalue = '', finishedOn = '0' } = await redis.hgetall(hash);
  await redis.hset(hash, 'returnvalue', returnvalue.replaceAll(from, jobId));
  await redis.zadd(queueKey('extract', 'completed'), finishedOn, jobId);
  await redis.zadd(ownKey('jobs', tenant), Date.parse(good.createdAt) - 1000 * (seconds + 1), jobId);
  const folder = join(service().dataDir, 'files', jobId);
  await mkdir(folder, { recursive: true });
  const [token] = ((await redis.hget(hash, 'spAttempts')) ?? '').split(',');
  await writeFile(join(folder, `${token}.mp3`), 'sound');
}

const listed = async (query = ''): Promise<Json> =>
  (await call('GET', `/v1/jobs?limit=100${query}`)).body.data;
const unreadable = {
  status: 'failed',
  error: { code: 'INTERNAL_ERROR', message: expect.stringContaining('cannot be read: ') },
};

describe('a job whose record has', () => {
  it.each(Object.keys(poisons))('%s is shown as failed wherever it is asked for', async (name) => {
    const jobId = ids[name] ?? '';
    expect((await call('GET', `/v1/jobs/${jobId}`)).body.data).toMatchObject({ jobId, ...unreadable });
    const failure = { success: false, error: unreadable.error };
    expect((await call('GET', `/v1/status/${jobId}`)).body).toEqual(failure);
    expect((await call('GET', `/v1/download/${jobId}`)).body).toEqual(failure);
    expect((await call('GET', `/v1/jobs/${jobId}/deliveries`)).body.data).toEqual({ deliveries: [] });
    const events = await call('GET', `/v1/jobs/${jobId}/events`);
    expect(events.bytes.toString()).toContain('cannot be read: ');
    const retried = await call('POST', `/v1/jobs/${jobId}/retry`);
    expect([retried.status, retried.body.error.message]).toEqual([
      400,
      expect.stringContaining('submit the job again'),
    ]);
    const sent = await call('POST', `/v1/jobs/${jobId}/voice-message`, { instance: 'main', number: '1' });
    expect(sent.body.error.code).toBe('INVALID_REQUEST');
    expect((await call('GET', `/v1/jobs/${jobId}`, undefined, service().key)).status).toBe(404);
  });

  it('any of them leaves the lists whole, and is among the failed ones', async () => {
    expect((await call('GET', '/v1/usage')).body.data.unfinishedJobs.used).toBe(0);
    const all = [good.jobId, ...Object.values(ids)];
    const { jobs, total } = await listed();
    expect(jobs.map(({ jobId }: Json) => jobId)).toEqual(all);
    expect(total).toBe(all.length);
    for (const job of jobs.slice(1)) expect(job).toMatchObject(unreadable);
    expect((await listed('&status=completed')).jobs.map(({ jobId }: Json) => jobId)).toEqual([good.jobId]);
    expect((await listed('&status=failed')).jobs.map(({ jobId }: Json) => jobId)).toEqual(all.slice(1));
    expect((await listed(`&q=${good.jobId}`)).jobs).toHaveLength(1);
    const batchId = 'batch_0123456789abcdef';
    await redis.hset(ownKey('batch', batchId), { tenant, jobs: all.join(',') });
    const batch = (await call('GET', `/v1/batch/${batchId}`)).body.data;
    expect(batch.counts).toEqual({ queued: 0, processing: 0, completed: 1, failed: all.length - 1 });
  });

  it('any of them leaves the board whole', async () => {
    const authorization = `Basic ${Buffer.from(`admin:${ADMIN_KEY}`).toString('base64')}`;
    const path = '/admin/queues/api/queues?activeQueue=extract&status=completed&page=1&jobsPerPage=100';
    const { status, body, bytes } = await service().call('GET', path, {
      key: null,
      headers: { authorization },
    });
    expect(status, bytes.toString()).toBe(200);
    const shown = body.queues.find(({ name }: Json) => name === 'extract').jobs.map(({ id }: Json) => id);
    expect(shown.toSorted()).toEqual([good.jobId, ...Object.values(ids)].toSorted());
  });

  it.each(Object.keys(poisons))('%s can be deleted, with its files and its places in lists', async (name) => {
    const jobId = ids[name] ?? '';
    const removed = await call('DELETE', `/v1/jobs/${jobId}`);
    expect([removed.status, removed.body.data]).toEqual([
      200,
      expect.objectContaining({ jobId, status: 'failed' }),
    ]);
    expect((await call('GET', `/v1/jobs/${jobId}`)).status).toBe(404);
    expect((await listed()).jobs.map((job: Json) => job.jobId)).not.toContain(jobId);
    expect(await redis.zscore(queueKey('extract', 'completed'), jobId)).toBeNull();
    // Of a hash that is gone nothing tells which files there were.
    if (!name.includes('in place of')) {
      expect(await readdir(join(service().dataDir, 'files', jobId)).catch(() => [])).toEqual([]);
    }
  });
});

describe('another record that cannot be read', () => {
  it('of a webhook secret is told of with its remedy, and replaced', async () => {
    const hash = ownKey('webhook-secret', tenant);
    for (const poison of [setting('current', 'garbage'), setting('version', '2')]) {
      await call('GET', '/v1/webhooks/secret');
      await poison(hash);
      const { status, body } = await call('GET', '/v1/webhooks/secret');
      expect([status, body.error.message]).toEqual([404, expect.stringContaining('replace it with POST')]);
      const { secret } = (await call('POST', '/v1/webhooks/secret')).body.data;
      expect((await call('GET', '/v1/webhooks/secret')).body.data).toMatchObject({ secret });
    }
  });

  it.each(['string', 'edition', 'size'])(
    'of an upload (%s) is unknown, and uses up nothing',
    async (kind) => {
      const body = await readFile(clip('tone.mp4'));
      const upload = () =>
        service().call('POST', '/v1/uploads', { key, body, headers: { 'content-type': 'video/mp4' } });
      const { file } = (await upload()).body.data;
      const hash = ownKey('upload', file);
      if (kind === 'string') await redis.multi().del(hash).set(hash, 'x').exec();
      else await redis.hset(hash, kind === 'size' ? 'sizeBytes' : 'version', '2x');
      expect((await call('GET', `/v1/uploads/${file}`)).status).toBe(404);
      const before = (await call('GET', '/v1/usage')).body.data.uploadBytes.used;
      expect((await upload()).status).toBe(201);
      expect((await call('GET', '/v1/usage')).body.data.uploadBytes.used).toBe(before + body.length);
    },
  );

  it.each(['scopes', 'version', 'string'])(
    'of a key (%s) opens nothing, is listed, and can be revoked',
    async (kind) => {
      const other = await service().newKey({ name: 'poisoned' });
      const id = other.split('_')[1] ?? '';
      const hash = ownKey('key', id);
      if (kind === 'string') await redis.multi().del(hash).set(hash, 'x').exec();
      else await redis.hset(hash, kind, kind === 'version' ? '2' : 'fly');
      expect((await call('GET', '/v1/usage', undefined, other)).status).toBe(401);
      const keysOf = async (): Promise<Json[]> => (await call('GET', '/v1/keys')).body.data.keys;
      expect((await keysOf()).find((one) => one.id === id)).toMatchObject({ status: 'unreadable' });
      expect((await call('DELETE', `/v1/keys/${id}`)).status).toBe(200);
      expect((await keysOf()).find((one) => one.id === id)).toBeUndefined();
    },
  );

  it('of a day’s usage, or of what was posted to an endpoint, leaves lists and the rest whole', async () => {
    const hook = service().outside.hook('poisoned');
    const { jobId } = (
      await call('POST', '/v1/extract', {
        source: {
          type: 'url',
          url: await service().outside.file('poisoned.mp4', clip('tone.mp4')),
        },
        output: { format: 'mp3' },
        options: { webhook: hook.url },
      })
    ).body.data;
    const today = Math.floor(Date.now() / 86_400_000);
    await redis.set(ownKey('usage', tenant, String(today)), 'x');
    await service().ended(jobId, { key });
    await hook.got(1);
    const { endpoint } = endpointOf(hook.url);
    for (const name of [sentKey(tenant, endpoint), pendingKey(tenant, endpoint)]) await redis.set(name, 'x');
    const { jobs } = (await call('GET', '/v1/jobs?status=completed')).body.data;
    expect(jobs.map((one: Json) => one.jobId)).toContain(jobId);
    const day = new Date(today * 86_400_000).toISOString().slice(0, 10);
    expect((await call('GET', `/v1/usage?from=${day}`)).body.data.days).toMatchObject([{ day, jobs: 0 }]);
    const { endpoints } = (await call('GET', '/v1/endpoints')).body.data;
    expect(endpoints).toContainEqual(expect.objectContaining({ endpoint, pending: 0 }));
    const query = `endpoint=${encodeURIComponent(hook.url)}`;
    expect((await call('GET', `/v1/deliveries?${query}`)).body.data.deliveries).toEqual([]);
  });

  it('of a batch is unknown', async () => {
    const batchId = 'batch_00000000000000ff';
    await redis.hset(ownKey('batch', batchId), { tenant, jobs: good.jobId, version: '2' });
    expect((await call('GET', `/v1/batch/${batchId}`)).status).toBe(404);
    expect((await call('GET', `/v1/jobs?batch=${batchId}`)).body.data.jobs).toEqual([]);
  });

  it.each(['{', '{"version":2}'])('of an instance (%s) is listed and can be deleted', async (text) => {
    const make = async (instanceName: string): Promise<Json> =>
      (await service().gateway('POST', '/instance/create', { instanceName })).body;
    await make(`whole-${text.length}`);
    const { instance } = await make(`broken-${text.length}`);
    await redis.hset('{soundpost}:gateway:instances', instance.instanceId, text);
    const listedNow = async (): Promise<Json[]> =>
      (await service().gateway('GET', '/instance/fetchInstances')).body;
    const names = (await listedNow()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([`whole-${text.length}`, `broken-${text.length}`]));
    const name = `broken-${text.length}`;
    const sent = await service().gateway('POST', `/message/sendText/${name}`, {
      number: '1202555',
      text: 'x',
    });
    expect([sent.status, sent.body.code]).toEqual([503, 'not_connected']);
    expect((await service().gateway('DELETE', `/instance/delete/${name}`)).status).toBe(200);
    expect((await listedNow()).map((one) => one.name)).not.toContain(name);
    expect((await make(name)).instance.instanceName).toBe(name);
  });
});
