/** The board of the queues: who may look, what is seen, and that looking is all that can be done. In a real browser: board-page.all.test.ts. */

import { closeRedis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { queueNames } from '../../../src/jobs/names.ts';
import { jobKey } from '../../jobs/bullmq-keys.ts';
import { type Answer, useClips, useService } from '../api-fixture.ts';

const ADMIN_KEY = 'the key of these tests: ä';
const SECRET_WORD = 'canary31c9';

const service = useService({
  parts: ['worker', 'gateway'],
  // A collector that is away: what matters is that the context of a trace is in the jobs.
  environment: { ADMIN_KEY, TRUST_PROXY: '1', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
});
const clip = useClips('tone.mp4');
let jobId = '';
let failedId = '';

beforeAll(async () => {
  const url = await service().outside.file('tone.mp4', clip('tone.mp4'));
  const hook = service().outside.hook(`hook-${SECRET_WORD}`);
  jobId = await service().submit({
    source: { type: 'url', url: `${url}?token=${SECRET_WORD}` },
    output: { format: 'voice' },
    options: {
      webhook: `${hook.url}?token=${SECRET_WORD}`,
      voiceMessage: {
        instance: 'main',
        number: '12025550101',
        quoted: { key: { id: 'AB' }, message: { conversation: SECRET_WORD } },
      },
    },
  });
  await service().ended(jobId);
  await hook.got(2);
  failedId = await submitToFail();
});

/** A job of a caller who is traced, whose failure speaks of the caller: written into its record, since ours do not. */
async function submitToFail(): Promise<string> {
  const headers = {
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    tracestate: `vendor=${SECRET_WORD}`,
  };
  const url = service().outside.on('/missing.mp4', (_incoming, response) => response.writeHead(404).end());
  const refusing = service().outside.hook('refusing', () => ({ status: 410 }));
  const json = {
    source: { type: 'url', url },
    output: { format: 'mp3' },
    options: { webhook: refusing.url },
  };
  const { body } = await service().call('POST', '/v1/extract', { headers, json });
  const id: string = body.data.jobId;
  await service().ended(id);
  await refusing.got(1);
  const redis = connectPatiently(service().redis.url);
  try {
    const kept = await redis.hgetall(jobKey('extract', id));
    expect([kept.opts?.includes(SECRET_WORD), kept.failedReason]).toEqual([true, expect.any(String)]);
    const failure = { ...JSON.parse(kept.failedReason ?? ''), message: SECRET_WORD, details: SECRET_WORD };
    await redis.hset(jobKey('extract', id), {
      failedReason: JSON.stringify(failure),
      stacktrace: JSON.stringify([`Error: ${SECRET_WORD}\n    at ${SECRET_WORD}`]),
      defa: SECRET_WORD,
    });
    await redis.rpush(`${jobKey('extract', id)}:logs`, SECRET_WORD);
  } finally {
    await closeRedis(redis);
  }
  return id;
}

const basic = (password: string, user = 'anybody'): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

function look(
  path: string,
  authorization: string | null = basic(ADMIN_KEY),
  address = '192.0.2.1',
): Promise<Answer> {
  const headers = { 'x-forwarded-for': address, ...(authorization === null ? {} : { authorization }) };
  return service().call('GET', `/admin/queues${path}`, { key: null, headers });
}

describe('who may look', () => {
  it('is whoever has the key, as any user', async () => {
    expect((await look('')).status).toBe(200);
    expect((await look('/api/queues', basic(ADMIN_KEY, ''))).status).toBe(200);
    expect((await look('/queue/extract', basic(ADMIN_KEY, 'root'))).status).toBe(200);
  });

  it.each([
    ['none', null],
    ['a wrong one', basic('another key entirely')],
    ['an empty one', basic('')],
    ['the key as the user', basic('', ADMIN_KEY)],
    ['its beginning', basic(ADMIN_KEY.slice(0, -1))],
    ['a bearer', `Bearer ${ADMIN_KEY}`],
  ])('is nobody with %s, whatever the path', async (_what, authorization) => {
    for (const path of [
      '',
      '/',
      '/api/queues',
      '/static/css/none.css',
      '/nowhere',
      `/api/queues/extract/${jobId}`,
    ]) {
      const { status, headers, bytes } = await look(path, authorization);
      expect([path, status]).toEqual([path, 401]);
      expect(headers['www-authenticate']).toBe('Basic realm="Soundpost", charset="UTF-8"');
      expect(bytes.toString()).not.toContain('extract');
    }
  });

  it('an API key opens nothing, and a path beside the board is the API’s', async () => {
    expect((await service().call('GET', '/admin/queues')).status).toBe(401);
    expect((await service().call('GET', '/admin/queuesandmore')).body.error.code).toBe('NOT_FOUND');
  });

  it('whoever guesses is refused with 429 after a while, and the right key let in', async () => {
    const guesses = Array.from({ length: 40 }, (_one, nth) =>
      look('', basic(`guess number ${nth}`), '192.0.2.66'),
    );
    const answers = await Promise.all(guesses);
    const refused = answers.filter(({ status }) => status === 429);
    expect([answers.filter(({ status }) => status === 401).length, refused.length]).toEqual([30, 10]);
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0);
    expect((await look('', basic(ADMIN_KEY), '192.0.2.66')).status).toBe(200);
  });
});

describe('what is seen', () => {
  it('is each queue with its jobs, and what was done', async () => {
    const { body } = await look('/api/queues?activeQueue=extract&status=completed');
    const queues = body.queues.map(({ name, readOnlyMode }: { name: string; readOnlyMode: boolean }) => [
      name,
      readOnlyMode,
    ]);
    expect(queues).toEqual(Object.values(queueNames).map((name) => [name, true]));
    expect(body.queues[0].jobs[0]).toMatchObject({
      id: jobId,
      data: {
        source: { type: 'url', url: expect.stringMatching(/\/tone\.mp4$/) },
        output: { format: 'voice' },
      },
      returnValue: { outputFile: { format: 'voice' } },
    });
  });

  it('holds no secret, number or word of a caller, wherever jobs are shown', async () => {
    const parts = ['webhook', 'voice', 'completion', 'extract'];
    const paths = [
      ...parts.flatMap((name) =>
        ['completed', 'failed', 'latest'].map((status) => `/api/queues?activeQueue=${name}&status=${status}`),
      ),
      ...['', '/flow', '/logs'].map((more) => `/api/queues/extract/${jobId}${more}`),
      ...['', '/flow', '/logs'].map((more) => `/api/queues/extract/${failedId}${more}`),
      ...['', '/flow'].map((more) => `/api/queues/completion/${failedId}-done${more}`),
      ...['', '/flow'].map((more) => `/api/queues/webhook/${jobId}-webhook${more}`),
      ...['', '/flow'].map((more) => `/api/queues/voice/${jobId}-voice${more}`),
    ];
    for (const path of paths) {
      const { status, bytes } = await look(path);
      expect([path, status]).toEqual([path, 200]);
      for (const word of [SECRET_WORD, '12025550101']) {
        expect([path, bytes.toString().includes(word)]).toEqual([path, false]);
      }
    }
    const { body } = await look(`/api/queues/webhook/${jobId}-webhook`);
    expect(body.job.data.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/…$/);
  });
});

it('why a job failed is seen by its code, why a webhook did by what was answered', async () => {
  const { body } = await look('/api/queues?activeQueue=extract&status=failed');
  expect(body.queues[0].jobs).toMatchObject([
    { id: failedId, isFailed: true, failedReason: 'DOWNLOAD_FAILED', attempts: 1, stacktrace: [] },
  ]);
  expect(body.queues[0].jobs[0].opts).toMatchObject({ jobId: failedId, parent: { id: `${failedId}-done` } });
  const answered = await until('the webhook was given up', async () => {
    const { body: of } = await look(`/api/queues/webhook/${failedId}-webhook`);
    return of.status === 'failed' && of.job.failedReason;
  });
  expect(answered).toBe('the receiver answered 410');
  const { body: flow } = await look(`/api/queues/extract/${failedId}/flow`);
  expect(flow.flowRoot).toMatchObject({ queueName: 'completion', children: [{ id: failedId }] });
});

describe('what can be done', () => {
  it.each([
    ['PUT', (id: string) => `/api/queues/extract/${id}/clean`],
    ['PUT', (id: string) => `/api/queues/extract/${id}/retry`],
    ['PUT', () => '/api/queues/extract/clean/completed'],
    ['PUT', () => '/api/queues/extract/obliterate'],
    ['PUT', () => '/api/queues/pause'],
    ['POST', () => '/api/queues/extract/add'],
    ['PATCH', (id: string) => `/api/queues/extract/${id}/update-data`],
    ['DELETE', (id: string) => `/api/queues/extract/${id}`],
  ])('is not %s %s', async (method, pathOf) => {
    const path = `/admin/queues${pathOf(jobId)}`;
    const headers = { authorization: basic(ADMIN_KEY), 'x-forwarded-for': '192.0.2.1' };
    expect((await service().call(method, path, { key: null, headers, json: {} })).status).toBe(405);
    expect(await service().job(jobId)).toMatchObject({ status: 'completed' });
  });

  it('is not asking for everything at once', async () => {
    expect((await look('/api/queues?activeQueue=extract&jobsPerPage=101')).status).toBe(400);
  });
});
