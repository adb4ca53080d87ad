import { once } from 'node:events';
import { createConnection, createServer, type Socket } from 'node:net';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Ask, type Json, TestService, useClips, useService } from './api-fixture.ts';

const clip = useClips('tone.mp4');
const service = useService({
  parts: ['worker', 'gateway'],
  names: { 'silent.example': [] },
});

let tone = '';
let missing = '';
beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
  missing = `http://127.0.0.1:${service().outside.port}/missing.mp4`;
});

/** Of most jobs nothing but their number matters. */
const job = (url = missing): Json => ({ source: { type: 'url', url }, output: { format: 'mp3' } });

/** A tenant of its own, so that what it has can be counted. */
async function tenant(): Promise<{
  key: string;
  post: (path: string, idempotencyKey: string, json?: unknown, ask?: Ask) => Promise<Answer>;
  jobs: () => Promise<string[]>;
}> {
  const key = await service().newKey();
  return {
    key,
    post: (path, idempotencyKey, json, ask = {}) =>
      service().call('POST', path, { key, json, headers: { 'idempotency-key': idempotencyKey }, ...ask }),
    jobs: async () => {
      const { body } = await service().call('GET', '/v1/jobs?limit=100', { key });
      return body.data.jobs.map(({ jobId }: Json) => jobId);
    },
  };
}

const isReplay = ({ headers }: Answer): boolean => headers['idempotent-replayed'] === 'true';

describe('A6. Idempotency-Key: the same request gets the first answer again', () => {
  it('POST /v1/extract', async () => {
    const { post, jobs } = await tenant();
    const first = await post('/v1/extract', 'one', job());
    const again = await post('/v1/extract', 'one', job());
    expect([first.status, isReplay(first)]).toEqual([202, false]);
    expect([again.status, isReplay(again), again.body]).toEqual([202, true, first.body]);
    expect([again.headers.location, again.headers['retry-after']]).toEqual([
      first.headers.location,
      first.headers['retry-after'],
    ]);
    expect(await jobs()).toEqual([first.body.data.jobId]);
  });

  it('POST /v1/batch', async () => {
    const { post, jobs } = await tenant();
    const json = { jobs: [job(), job(), job()] };
    const first = await post('/v1/batch', 'one', json);
    const again = await post('/v1/batch', 'one', json);
    expect([again.status, isReplay(again), again.body]).toEqual([202, true, first.body]);
    expect(await jobs()).toHaveLength(3);
  });

  it('POST /v1/jobs/{jobId}/retry', async () => {
    const { key, post, jobs } = await tenant();
    const failed = await service().submit(job(), { key });
    await until('it has failed', async () => (await service().job(failed, { key })).status === 'failed');
    const first = await post(`/v1/jobs/${failed}/retry`, 'one');
    const again = await post(`/v1/jobs/${failed}/retry`, 'one');
    expect([again.status, isReplay(again), again.body]).toEqual([202, true, first.body]);
    expect(await jobs()).toHaveLength(2);
    const second: string = first.body.data.jobId;
    await until('it has failed, too', async () => (await service().job(second, { key })).status === 'failed');
    expect((await post(`/v1/jobs/${second}/retry`, 'one')).status).toBe(422);
  });

  it('POST /v1/jobs/{jobId}/voice-message', async () => {
    const { key, post } = await tenant();
    const jobId = await service().submit(job(tone), { key });
    await until('it is done', async () => (await service().job(jobId, { key })).status === 'completed');
    const path = `/v1/jobs/${jobId}/voice-message`;
    const message = { instance: 'main', number: '12025550103' };
    const first = await post(path, 'one', message);
    expect(first.status).toBe(202);
    const { key: sent } = await until('it is sent', async () => {
      const { voiceMessage } = await service().job(jobId, { key });
      return voiceMessage.status === 'sent' && voiceMessage;
    });
    const again = await post(path, 'one', message);
    expect([again.status, isReplay(again), again.body]).toEqual([202, true, first.body]);
    expect((await post(path, 'one', { ...message, number: '12025550101' })).status).toBe(422);
    const chat = '/inbox/api/instances/main/chats/12025550103@people.loopback/messages';
    const arrived: Json[] = (await service().gateway('GET', chat)).body;
    expect(arrived.map((one) => one.key.id)).toEqual([sent.id]);
  });

  it('POST /v1/extract with a file, whatever boundary the form has', async () => {
    const { post, jobs } = await tenant();
    const bytes = (await service().call('GET', tone, { key: null })).bytes;
    const form = (request: object): FormData => {
      const body = new FormData();
      body.append('request', JSON.stringify(request));
      body.append('file', new Blob([new Uint8Array(bytes)]), 'a.mp4');
      return body;
    };
    const request = { output: { format: 'mp3' } };
    const first = await post('/v1/extract', 'form', undefined, { body: form(request) });
    const again = await post('/v1/extract', 'form', undefined, { body: form(request) });
    expect([first.status, again.status, isReplay(again)]).toEqual([202, 202, true]);
    expect(again.body).toEqual(first.body);
    const other = await post('/v1/extract', 'form', undefined, {
      body: form({ output: { format: 'flac' } }),
    });
    expect(other.status).toBe(422);
    expect(await jobs()).toHaveLength(1);
  });
});

describe('A6. Idempotency-Key: refusals', () => {
  it('another body is 422 and does nothing, on the same route or on another', async () => {
    const { post, jobs } = await tenant();
    await post('/v1/extract', 'one', job());
    const other = await post('/v1/extract', 'one', { ...job(), output: { format: 'flac' } });
    const elsewhere = await post('/v1/batch', 'one', { jobs: [job()] });
    for (const { status, body } of [other, elsewhere]) {
      expect([status, body.error.code]).toEqual([422, 'IDEMPOTENCY_MISMATCH']);
    }
    expect(await jobs()).toHaveLength(1);
  });

  it('while the first runs it is 409 with Retry-After, or its answer; there is one job', async () => {
    const { post, jobs } = await tenant();
    const slow = job('https://silent.example/a.mp4');
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('/v1/extract', 'one', slow)));
    const begun = answers.filter((answer) => answer.status === 202 && !isReplay(answer));
    const replayed = answers.filter(isReplay);
    const refused = answers.filter(({ status }) => status === 409);
    // Whoever comes late, after two seconds, is given the answer.
    expect([begun.length, refused.length + replayed.length]).toEqual([1, 7]);
    expect(refused.length).toBeGreaterThan(0);
    for (const { body } of replayed) expect(body).toEqual(begun[0]?.body);
    for (const { body, headers } of refused) {
      expect(body.error.code).toBe('IDEMPOTENCY_IN_PROGRESS');
      expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    }
    expect(await jobs()).toEqual([begun[0]?.body.data.jobId]);
  });

  it.each([
    ['empty', ''],
    ['too long', 'a'.repeat(256)],
  ])('a key that is %s is INVALID_REQUEST', async (_what, idempotencyKey) => {
    const { post } = await tenant();
    const { status, body } = await post('/v1/extract', idempotencyKey, job());
    expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
  });

  it('255 characters are a key', async () => {
    const { post } = await tenant();
    expect((await post('/v1/extract', 'a'.repeat(255), job())).status).toBe(202);
  });

  it('a refused request leaves its key free, also for another body', async () => {
    const { post } = await tenant();
    expect((await post('/v1/extract', 'one', { ...job(), extra: 1 })).status).toBe(400);
    expect((await post('/v1/extract', 'one', job('http://10.0.0.1/a'))).status).toBe(400);
    const taken = await post('/v1/extract', 'one', job());
    expect([taken.status, isReplay(taken)]).toEqual([202, false]);
  });

  it('keys are a tenant’s own', async () => {
    const [one, two] = [await tenant(), await tenant()];
    const first = await one.post('/v1/extract', 'shared', job());
    const second = await two.post('/v1/extract', 'shared', job());
    expect([second.status, isReplay(second)]).toEqual([202, false]);
    expect(second.body.data.jobId).not.toBe(first.body.data.jobId);
  });
});

/** A way to Redis that is cut when a command with the text comes along: it and everything after it is lost. */
async function cutAt(
  socketPath: string,
  text: string,
): Promise<{ url: string; cut: Promise<void>; close: () => void }> {
  const { promise: cut, resolve } = Promise.withResolvers<void>();
  let open = true;
  const sockets = new Set<Socket>();
  const path = `${socketPath}.cut`;
  const server = createServer((api) => {
    const upstream = createConnection(socketPath);
    for (const socket of [api, upstream]) sockets.add(socket.on('error', () => socket.destroy()));
    api.on('close', () => upstream.destroy());
    api.on('data', (chunk) => {
      if (open && chunk.includes(text)) {
        open = false;
        resolve();
      }
      if (open) upstream.write(chunk);
    });
    upstream.on('data', (chunk) => open && api.write(chunk));
  });
  server.listen(path);
  await once(server, 'listening');
  return {
    url: `unix://${path}`,
    cut,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

it('A6. Idempotency-Key: of a process that is lost between accepting and answering the request sent again makes no second job', async () => {
  const { redis } = service();
  // The job is queued, and confirmed with its answer. What of it reaches Redis is what of a process that was killed there would.
  const way = await cutAt(redis.socketPath, '"httpStatus":202');
  const doomed = await TestService.start({
    parts: [],
    environment: { REDIS_URL: way.url, REDIS_DEADLINE_SECONDS: '' },
    allow: [new URL(tone).host],
  });
  const key = await service().newKey();
  const hook = service().outside.hook('lost');
  const ask = (base: string): Promise<Answer> =>
    service().call('POST', `${base}/v1/extract`, {
      key,
      json: { ...job(tone), options: { webhook: hook.url } },
      headers: { 'idempotency-key': 'lost' },
    });
  const lost = ask(doomed.url);
  await way.cut;
  expect((await lost).status).toBe(202);
  const answer = await until('the lost request is given up', async () => {
    const again = await ask(service().url);
    return again.status !== 409 && again;
  });
  const told = await hook.got(1);
  expect([answer.status, answer.body.data.jobId]).toEqual([202, told[0]?.json.jobId]);
  expect(isReplay(await ask(service().url))).toBe(true);
  const { body } = await service().call('GET', '/v1/jobs', { key });
  expect(body.data.jobs.map(({ jobId, status }: Json) => [jobId, status])).toEqual([
    [answer.body.data.jobId, 'completed'],
  ]);
  expect((await service().call('GET', '/v1/usage', { key })).body.data.unfinishedJobs.used).toBe(0);
  expect(hook.received).toHaveLength(1);
  way.close();
  await doomed.close();
});
