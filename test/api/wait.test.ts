/** A4 "In one request": `Prefer: wait` answers the job that has ended, or its file. */
import { request as httpRequest } from 'node:http';
import { ownKey } from 'soundpost-kit/redis/keys';
import type { Storage } from 'soundpost-kit/storage/storage';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { waitSeconds } from '../../src/api/wait.ts';
import { CHANGE_CHANNEL } from '../../src/jobs/names.ts';
import { type Answer, type Json, useClips, useService } from './api-fixture.ts';

const clip = useClips('tone.mp4');
const lines: string[] = [];
/** While there is one, no stored file is read. */
let hold: PromiseWithResolvers<void> | undefined;
let isAsked = false;
const service = useService({
  environment: { LOG_LEVEL: 'warn' },
  log: (line) => lines.push(line),
  storage: (real) =>
    new Proxy(real, {
      get:
        (target, name: keyof Storage) =>
        async (...args: unknown[]) => {
          isAsked ||= name === 'read';
          if (name === 'read') await hold?.promise;
          return Reflect.apply(target[name], target, args);
        },
    }),
});
let tone = '';

beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
});

const from = (url: string): object => ({ source: { type: 'url', url }, output: { format: 'mp3' } });
const extract = (json: Json, headers: Record<string, string>, key?: string): Promise<Answer> =>
  service().call('POST', '/v1/extract', { json, headers, ...(key && { key }) });
const missing = (): string => `http://127.0.0.1:${service().outside.port}/missing.mp4`;

describe('RFC 7240: how long is waited', () => {
  it.each([
    ['wait=30', 30],
    ['respond-async, WAIT = "07"; foo=bar', 7],
    ['foo="a, wait=3", wait=4', 4],
    ['wait=999', 60],
    ['wait=5, wait=9', 5],
    ['wait=0', undefined],
    ['wait', undefined],
    ['wait=soon, wait=9', undefined],
    ['wait=1.5', undefined],
    ['wait=-1', undefined],
    ['waiting=5', undefined],
    ['foo="', undefined],
    [undefined, undefined],
  ])('%s is %s', (field, seconds) => {
    expect(waitSeconds(field)).toBe(seconds);
  });
});

describe('A request that waits', () => {
  it('is answered with the job as GET /v1/jobs gives it', async () => {
    const { status, headers, body } = await extract(from(tone), { prefer: 'wait=60' });
    expect([status, headers['preference-applied'], headers['cache-control']]).toEqual([
      200,
      'wait',
      'no-store',
    ]);
    expect(body).toEqual({ success: true, data: await service().job(body.data.jobId) });
    expect(body.data.status).toBe('completed');
    // Apart from the submissions that are to be quick.
    await until('it is counted', async () => {
      const { bytes } = await service().call('GET', '/metrics', { key: null });
      return bytes.toString().includes('route="/v1/extract (waiting)",status="200"');
    });
  });

  it('gets the 202 after its time, and the job goes on', async () => {
    const slow = await service().outside.stalling('slow.mp4', clip('tone.mp4'));
    const { status, headers, body } = await extract(from(slow.url), { prefer: 'wait=1' });
    expect([status, headers['preference-applied']]).toEqual([202, 'wait']);
    expect(headers.location).toBe(body.data.statusUrl);
    slow.letGo();
    expect((await service().ended(body.data.jobId)).status).toBe('completed');
  });

  it('without the preference, or one that cannot be read, the 202 comes at once', async () => {
    const { status, headers } = await extract(from(tone), { prefer: 'wait=long', accept: 'audio/*' });
    expect([status, headers['preference-applied']]).toEqual([202, undefined]);
  });

  it('of a key that may not read jobs is not made to wait, nor shown one', async () => {
    const key = await service().newKey({ scopes: ['extract'] });
    const { status, headers } = await extract(from(tone), { prefer: 'wait=60' }, key);
    expect([status, headers['preference-applied']]).toEqual([202, undefined]);
  });

  it('repeated under its Idempotency-Key waits again for the same job', async () => {
    const slow = await service().outside.stalling('repeated.mp4', clip('tone.mp4'));
    const headers = { 'idempotency-key': 'wait-1', prefer: 'wait=1' };
    const first = await extract(from(slow.url), headers);
    expect(first.status).toBe(202);
    const again = extract(from(slow.url), { ...headers, prefer: 'wait=60' });
    slow.letGo();
    const { status, headers: answered, body } = await again;
    expect([status, answered['idempotent-replayed'], body.data.jobId, body.data.status]).toEqual([
      ...[200, 'true', first.body.data.jobId, 'completed'],
    ]);
    const plain = await extract(from(slow.url), { 'idempotency-key': 'wait-1' });
    expect([plain.status, plain.body]).toEqual([202, first.body]);
  });

  it('that leaves changes nothing: the job completes, and its place is free', async () => {
    const slow = await service().outside.stalling('left.mp4', clip('tone.mp4'));
    const key = await service().newKey();
    const sent = httpRequest(`${service().url}/v1/extract`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json', prefer: 'wait=60' },
    });
    sent.end(JSON.stringify(from(slow.url)));
    sent.on('error', () => undefined);
    const closed = new Promise((resolve) => sent.once('close', resolve));
    await until('the download has begun', () => slow.begun());
    const [{ jobId }] = (await service().call('GET', '/v1/jobs', { key })).body.data.jobs;
    sent.destroy();
    await closed;
    const redis = connectPatiently(service().redis.url);
    const waiting = ownKey('waiting', key.split('_')[1] ?? '');
    await until('no request of the key waits', async () => (await redis.zcard(waiting)) === 0);
    redis.disconnect();
    slow.letGo();
    expect((await service().ended(jobId, { key })).status).toBe('completed');
  });

  it('has its place no more while its file is sent', async () => {
    const key = await service().newKey();
    const redis = connectPatiently(service().redis.url);
    const waiting = ownKey('waiting', key.split('_')[1] ?? '');
    isAsked = false;
    hold = Promise.withResolvers();
    const answer = extract(from(tone), { prefer: 'wait=60', accept: 'audio/*' }, key);
    await until('its file is read', () => isAsked);
    await until('its place is free', async () => (await redis.zcard(waiting)) === 0);
    redis.disconnect();
    hold.resolve();
    const { status, headers } = await answer;
    expect([status, headers['content-type']]).toEqual([200, 'audio/mpeg']);
  });

  it('whose job cannot be read for a while waits on', async () => {
    const slow = await service().outside.stalling('unread.mp4', clip('tone.mp4'));
    const key = await service().newKey();
    const answer = extract(from(slow.url), { prefer: 'wait=60' }, key);
    await until('the download has begun', () => slow.begun());
    const [{ jobId }] = (await service().call('GET', '/v1/jobs', { key })).body.data.jobs;
    const redis = connectPatiently(service().redis.url);
    await redis.acl('SETUSER', 'default', '-hmget', '-hgetall');
    await until('a look has failed', async () => {
      await redis.publish(CHANGE_CHANNEL, jobId);
      return lines.some((line) => line.includes(jobId) && line.includes('waited for'));
    });
    await redis.acl('SETUSER', 'default', '+hmget', '+hgetall');
    redis.disconnect();
    slow.letGo();
    const { status, body } = await answer;
    expect([status, body.data.status]).toEqual([200, 'completed']);
  });

  it('is refused with 429, and nothing queued, when 50 of its key wait', async () => {
    const key = await service().newKey();
    const redis = connectPatiently(service().redis.url);
    const inAMinute = Math.floor(Date.now() / 1000) + 60;
    const others = Array.from({ length: 50 }, (_, nth) => [inAMinute, `other-${nth}`]).flat();
    await redis.zadd(ownKey('waiting', key.split('_')[1] ?? ''), ...others);
    redis.disconnect();
    const { status, headers, body } = await extract(from(tone), { prefer: 'wait=5' }, key);
    expect([status, body.error.code, headers['retry-after']]).toEqual([429, 'RATE_LIMITED', '15']);
    expect((await service().call('GET', '/v1/jobs', { key })).body.data.jobs).toEqual([]);
    expect((await extract(from(tone), {}, key)).status).toBe(202);
  });

  it('ends with the 202 when its key is revoked', async () => {
    const slow = await service().outside.stalling('revoked.mp4', clip('tone.mp4'));
    const key = await service().newKey();
    const answer = extract(from(slow.url), { prefer: 'wait=60' }, key);
    await until('the download has begun', () => slow.begun());
    await service().revokeKey(key);
    expect((await answer).status).toBe(202);
    slow.letGo();
  });

  it('for a retry is answered in the same way', async () => {
    const { body } = await extract(from(missing()), { prefer: 'wait=60' });
    expect(body.data).toMatchObject({ status: 'failed', error: { details: 'HTTP 404' } });
    const path = `/v1/jobs/${body.data.jobId}/retry`;
    const again = await service().call('POST', path, { headers: { prefer: 'wait=60' } });
    expect([again.status, again.body.data.retryOf]).toEqual([200, body.data.jobId]);
  });
});

describe('Accept: audio/*', () => {
  const wanted = { prefer: 'wait=60', accept: 'audio/*' };

  it.each(['audio/*', 'application/octet-stream', 'audio/mpeg, application/json;q=0.5'])(
    'with %s the answer is the file, as a download has it',
    async (accept) => {
      const { status, headers, bytes } = await extract(from(tone), { ...wanted, accept });
      const jobId = headers['soundpost-job'];
      const download = await service().call('GET', `/v1/download/${jobId}`);
      expect([status, headers['preference-applied']]).toEqual([200, 'wait']);
      expect(bytes.equals(download.bytes)).toBe(true);
      for (const name of ['content-type', 'content-disposition', 'content-length', 'etag', 'cache-control']) {
        expect(headers[name], name).toBe(download.headers[name]);
      }
    },
  );

  const several = {
    outputs: [
      { name: 'a', format: 'mp3' },
      { name: 'b', format: 'opus' },
    ],
  };
  it.each<[string, () => Json, Record<string, string>, string]>([
    ['that failed', () => from(missing()), {}, 'failed'],
    ['with several files', () => ({ ...from(tone), output: undefined, ...several }), {}, 'completed'],
    ['that is a probe', () => ({ ...from(tone), output: { format: 'probe' } }), {}, 'completed'],
    ['asked for as JSON first', () => from(tone), { accept: 'application/json, audio/*;q=0.9' }, 'completed'],
    ['asked for as anything', () => from(tone), { accept: '*/*' }, 'completed'],
  ])('a job %s is answered as JSON', async (_what, json, headers, state) => {
    const { status, headers: answered, body } = await extract(json(), { ...wanted, ...headers });
    expect([status, body.success, body.data.status]).toEqual([200, true, state]);
    expect(answered['content-type']).toMatch(/^application\/json/);
  });

  it('a key that may not download gets the job', async () => {
    const key = await service().newKey({ scopes: ['extract', 'read'] });
    const { body } = await extract(from(tone), wanted, key);
    expect(body.data.status).toBe('completed');
  });
});
