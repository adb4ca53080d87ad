import { readdir } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { closeRedis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { programOf, startedFromNow } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { Webhook } from 'standardwebhooks';
import { beforeAll, describe, expect, it } from 'vitest';
import { jobKey } from '../jobs/bullmq-keys.ts';
import { type Answer, type Json, useClips, useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const clip = useClips('tone.mp4', 'long.wav');
const service = useService({
  parts: ['worker', 'gateway'],
  environment: { WORKER_CONCURRENCY: '2', DOWNLOADS_AHEAD: '0' },
});
/** Nobody works here, so jobs stay queued. */
const quiet = useService({ parts: [] });

let tone = '';
const job = (url: string, more: object = {}): Json => ({
  source: { type: 'url', url },
  output: { format: 'mp3' },
  ...more,
});

beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
});

describe('A4. GET /v1/jobs', () => {
  /** A tenant with so many queued jobs, named by their number. */
  async function tenantWith(
    count: number,
  ): Promise<{ key: string; ids: string[]; submit: () => Promise<string> }> {
    const key = await quiet().newKey();
    const ids: string[] = [];
    const submit = async (): Promise<string> => {
      const url = `http://127.0.0.1:${quiet().outside.port}/video-${ids.length}.mp4?token=hidden`;
      const id = await quiet().submit(job(url, { options: { filename: `Name ${ids.length}` } }), { key });
      ids.push(id);
      return id;
    };
    for (let n = 0; n < count; n += 1) await submit();
    return { key, ids, submit };
  }

  const list = async (key: string, query: Record<string, string> = {}): Promise<Json> => {
    const { status, body } = await quiet().call('GET', `/v1/jobs?${new URLSearchParams(query)}`, { key });
    expect([status, body.success]).toEqual([200, true]);
    return body.data;
  };

  it('lists the newest first, 20 unless it is told otherwise, as GET /v1/jobs/{jobId} gives them', async () => {
    const { key, ids } = await tenantWith(23);
    const { jobs, nextCursor } = await list(key);
    expect(jobs.map(({ jobId }: Json) => jobId)).toEqual(ids.toReversed().slice(0, 20));
    expect(nextCursor).toEqual(expect.any(String));
    expect(jobs[0]).toEqual(await quiet().job(ids.at(-1) ?? '', { key }));
    const all = await list(key, { limit: '100' });
    expect([all.jobs.length, all.nextCursor]).toEqual([23, null]);
  });

  it.each([1, 20])('pages of %i show each job once, also while jobs are added', async (limit) => {
    const { key, ids, submit } = await tenantWith(21);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Json = await list(key, { limit: String(limit), ...(cursor ? { cursor } : {}) });
      expect(page.jobs.length).toBeLessThanOrEqual(limit);
      seen.push(...page.jobs.map(({ jobId }: Json) => jobId));
      cursor = page.nextCursor;
      await submit();
    } while (cursor !== null);
    expect(seen).toEqual(ids.slice(0, 21).toReversed());
  });

  it('many jobs of one moment are each shown once', async () => {
    const key = await quiet().newKey();
    const url = `http://127.0.0.1:${quiet().outside.port}/a`;
    const batches = await Promise.all(
      [1, 2, 3].map(() =>
        quiet().call('POST', '/v1/batch', {
          key,
          json: { jobs: Array.from({ length: 10 }, () => job(url)) },
        }),
      ),
    );
    const ids = batches.flatMap(({ body }) => body.data.jobs.map(({ jobId }: Json) => jobId));
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Json = await list(key, { limit: '4', ...(cursor ? { cursor } : {}) });
      seen.push(...page.jobs.map(({ jobId }: Json) => jobId));
      cursor = page.nextCursor;
    }
    expect(seen.toSorted()).toEqual(ids.toSorted());
  });

  it('q finds by id, source, chosen name and file name, in any case, but not by what a query hides', async () => {
    const { key, ids } = await tenantWith(12);
    const found = async (q: string): Promise<string[]> =>
      (await list(key, { q })).jobs.map(({ jobId }: Json) => jobId);
    expect(await found('NAME 3')).toEqual([ids[3]]);
    expect(await found('video-4.MP4')).toEqual([ids[4]]);
    expect(await found(ids[5]?.slice(4, 14) ?? '')).toEqual([ids[5]]);
    expect(await found('name 1')).toEqual([ids[11], ids[10], ids[1]]);
    expect(await found('hidden')).toEqual([]);
    expect(await found('nothing like it')).toEqual([]);
  });

  it('status finds by state, and works together with q and a cursor', async () => {
    const { key, ids } = await tenantWith(6);
    for (const id of [ids[1], ids[4]]) await quiet().call('DELETE', `/v1/jobs/${id}`, { key });
    const found = async (query: Record<string, string>): Promise<string[]> =>
      (await list(key, query)).jobs.map(({ jobId }: Json) => jobId);
    expect(await found({ status: 'failed' })).toEqual([ids[4], ids[1]]);
    expect(await found({ status: 'queued' })).toEqual([ids[5], ids[3], ids[2], ids[0]]);
    expect(await found({ status: 'completed' })).toEqual([]);
    expect(await found({ status: 'failed', q: 'name 1' })).toEqual([ids[1]]);
    const first = await list(key, { status: 'queued', limit: '3' });
    expect(await found({ status: 'queued', limit: '3', cursor: first.nextCursor })).toEqual([ids[0]]);
  });

  it('from and to choose by time of submission, both inclusive, or by day; batch by batch; total counts them', async () => {
    const { key, ids } = await tenantWith(4);
    const { body } = await quiet().call('POST', '/v1/batch', {
      key,
      json: { jobs: [job(`http://127.0.0.1:${quiet().outside.port}/a`)] },
    });
    const {
      batchId,
      jobs: [{ jobId: batched }],
    } = body.data;
    const found = async (query: Record<string, string>): Promise<unknown[]> => {
      const { jobs, total } = await list(key, query);
      return [jobs.map(({ jobId }: Json) => jobId), total];
    };
    const createdAt = async (id: string | undefined): Promise<string> =>
      (await quiet().job(id ?? '', { key })).createdAt;
    const [second, third] = [await createdAt(ids[1]), await createdAt(ids[2])];
    const all = [batched, ...ids.toReversed()];
    expect(await found({ from: second, to: third })).toEqual([[ids[2], ids[1]], 2]);
    expect(await found({ from: third, status: 'queued' })).toEqual([all.slice(0, 3), 3]);
    expect(await found({ limit: '2' })).toEqual([all.slice(0, 2), 5]);
    expect(await found({ from: second.slice(0, 10) })).toEqual([all, 5]);
    expect(await found({ to: '2020-01-01' })).toEqual([[], 0]);
    expect(await found({ batch: batchId })).toEqual([[batched], 1]);
    expect(await found({ batch: batchId, status: 'failed' })).toEqual([[], 1]);
    expect((await list(key, { q: 'name' })).searchedUntil).toBeNull();
  });

  it('a search looks at 5,000 jobs a request, and says how far it came', async () => {
    const { key, ids } = await tenantWith(1);
    const redis = connectPatiently(quiet().redis.url);
    const index = ownKey('jobs', key.split('_')[1] ?? '');
    const now = Date.now() + 60_000;
    const others = Array.from({ length: 5003 }, (_, nth) => [now + nth, `job_${`${nth}`.padStart(16, '0')}`]);
    await redis.zadd(index, ...others.flat());
    const first = await list(key, { q: 'name 0' });
    expect([first.jobs, first.searchedUntil]).toEqual([[], new Date(now + 3).toISOString()]);
    const next = await list(key, { q: 'name 0', cursor: first.nextCursor });
    expect([next.jobs.map(({ jobId }: Json) => jobId), next.nextCursor]).toEqual([ids, null]);
    await closeRedis(redis);
  });

  it('for any order of records that vanish, the pages are full and give each kept job once', async () => {
    const redis = connectPatiently(quiet().redis.url);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        // Of twelve jobs, oldest first: before which page each vanishes, if it does.
        fc.array(fc.option(fc.integer({ min: 0, max: 4 }), { freq: 1 }), { minLength: 12, maxLength: 12 }),
        async (limit, vanishing) => {
          const key = await quiet().newKey();
          const submit = async (count: number): Promise<string[]> => {
            const jobs = Array.from({ length: count }, () =>
              job(`http://127.0.0.1:${quiet().outside.port}/a`),
            );
            const { body } = await quiet().call('POST', '/v1/batch', { key, json: { jobs } });
            return body.data.jobs.map(({ jobId }: Json) => jobId);
          };
          const ids = [...(await submit(6)), ...(await submit(6))];
          const seen: string[] = [];
          let cursor: string | null = '';
          for (let nth = 0; cursor !== null; nth += 1) {
            const gone = ids
              .filter((_, index) => vanishing[index] === nth)
              .map((id) => jobKey('extract', id));
            if (gone.length > 0) await redis.del(gone);
            const page: Json = await list(key, { limit: String(limit), ...(cursor ? { cursor } : {}) });
            cursor = page.nextCursor;
            expect(cursor === null || page.jobs.length === limit).toBe(true);
            seen.push(...page.jobs.map(({ jobId }: Json) => jobId));
          }
          const kept = ids.filter((_, index) => vanishing[index] === null);
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen).toEqual(expect.arrayContaining(kept));
        },
      ),
      { numRuns: 12 },
    );
    await closeRedis(redis);
  });

  it.each([
    ['from=yesterday', 'from'],
    ['to=2026-13-01', 'to'],
    ['batch=job_0123456789abcdef', 'batch'],
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['limit=', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['status=done', 'status'],
    ['status=', 'status'],
    [`q=${'a'.repeat(201)}`, 'q'],
    ['cursor=nonsense', 'cursor'],
    [`cursor=${Buffer.from('1.job_x').toString('base64url')}`, 'cursor'],
  ])('%s is INVALID_REQUEST', async (query, field) => {
    const { status, body } = await quiet().call('GET', `/v1/jobs?${query}`);
    expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
    expect(body.error.details).toContain(`${field}: `);
  });

  it("shows only the caller's own", async () => {
    await tenantWith(2);
    expect((await list(await quiet().newKey())).jobs).toEqual([]);
  });
});

describe('A4. DELETE /v1/jobs/{jobId}: cancel and erase', () => {
  const remove = (jobId: string): Promise<Answer> => service().call('DELETE', `/v1/jobs/${jobId}`);
  const started = startedFromNow();
  const programs = (): string[] => started().map(programOf);
  const workspaces = async (): Promise<string[]> => {
    const root = join(service().dataDir, 'workspaces');
    const ofWorkers = await Promise.all(
      (await readdir(root)).map((folder) => readdir(join(root, folder)).catch(() => [] as string[])),
    );
    return ofWorkers.flat().filter((name) => name.startsWith('job_'));
  };
  const cancelled = { code: 'JOB_CANCELLED', message: expect.stringMatching(/\S/) };

  it('a queued job ends at once, and never runs', async () => {
    const { outside } = service();
    const slow = await Promise.all([1, 2].map((n) => outside.stalling(`busy${n}.mp4`, clip('tone.mp4'))));
    const busy = await Promise.all(slow.map(({ url }) => service().submit(job(url))));
    await Promise.all(busy.map((jobId) => service().reaches(jobId, 'processing')));
    const untouched = await outside.file('untouched.mp4', clip('tone.mp4'));
    const jobId = await service().submit(job(untouched));
    const { status, body } = await remove(jobId);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      success: true,
      data: { jobId, status: 'failed', currentStep: null, outputFile: null, error: cancelled },
    });
    for (const { letGo } of slow) letGo();
    await Promise.all(busy.map((id) => service().ended(id)));
    expect(outside.requests).not.toContain('/untouched.mp4');
    expect(await service().job(jobId)).toMatchObject({ status: 'failed', error: cancelled, startedAt: null });
  });

  it('a running one: its ffmpeg goes and its workspace is removed', async () => {
    const url = await service().outside.file('long.wav', clip('long.wav'));
    const hook = service().outside.hook('cancelled');
    const output = { format: 'mp3', normalize: true };
    const jobId = await service().submit({ ...job(url), output, options: { webhook: hook.url } });
    await until('ffmpeg runs', async () => programs().includes('ffmpeg') && (await workspaces()).length > 0);
    const { status, body } = await remove(jobId);
    expect([status, body.data.status, body.data.error]).toEqual([200, 'failed', cancelled]);
    await until(
      'nothing is left',
      async () => !programs().includes('ffmpeg') && (await workspaces()).length === 0,
    );
    const told = await until('it is told', () => hook.received.find(({ json }) => json.jobId === jobId));
    expect(told?.json).toMatchObject({ event: 'job.failed', jobId, status: 'failed', error: cancelled });
    const status2 = await service().call('GET', `/v1/status/${jobId}`);
    expect([status2.status, status2.body.error]).toEqual([200, cancelled]);
    // It keeps the step that it had come to.
    expect((await service().job(jobId)).currentStep).toMatch(/_audio$/);
  });

  it('one that downloads lets go of its source', async () => {
    const asked = Promise.withResolvers<IncomingMessage>();
    const url = service().outside.on('/endless.mp4', (incoming, response) => {
      response.writeHead(200, { 'content-length': 1e9 }).write(Buffer.alloc(1000));
      asked.resolve(incoming);
    });
    const jobId = await service().submit(job(url));
    const source = await asked.promise;
    const closed = new Promise((resolve) => source.once('close', resolve));
    await remove(jobId);
    await closed;
    expect((await service().job(jobId)).error).toEqual(cancelled);
  });

  it('a cancelled job stays cancelled, and can be retried, which a running one cannot', async () => {
    const slow = await service().outside.stalling('twice.mp4', clip('tone.mp4'));
    const jobId = await service().submit(job(slow.url));
    await service().reaches(jobId, 'processing');
    const early = await service().call('POST', `/v1/jobs/${jobId}/retry`);
    expect([early.status, early.body.error.code]).toEqual([400, 'INVALID_REQUEST']);
    await Promise.all([remove(jobId), remove(jobId)]);
    expect((await remove(jobId)).body.data).toMatchObject({ status: 'failed', error: cancelled });
    slow.letGo();
    const { status, body } = await service().call('POST', `/v1/jobs/${jobId}/retry`);
    expect(status).toBe(202);
    expect(await service().ended(body.data.jobId)).toMatchObject({ status: 'completed', retryOf: jobId });
    expect((await service().job(jobId)).status).toBe('failed');
  });

  it('a finished one loses its files now, but not its record', async () => {
    const { jobId } = await service().run(job(tone));
    const files = (): Promise<string[]> =>
      readdir(join(service().dataDir, 'files', jobId)).catch(() => [] as string[]);
    expect(await files()).not.toEqual([]);
    const { status, body } = await remove(jobId);
    expect([status, body.data.status]).toEqual([200, 'completed']);
    expect(await files()).toEqual([]);
    expect((await service().call('GET', `/v1/download/${jobId}`)).status).toBe(410);
    expect((await service().job(jobId)).status).toBe('completed');
  });
});

describe('A4. GET /v1/usage', () => {
  it('says by day what jobs have used, each once, on the day of its end', async () => {
    const key = await service().newKey();
    const ended = [
      await service().run(job(tone), { key }),
      await service().run(job(`${tone}.gone`), { key }),
      await service().run(job(tone, { output: { format: 'probe' } }), { key }),
    ];
    const today = ended[0].finishedAt.slice(0, 10);
    const usage = async (query: string, by = key): Promise<Answer> =>
      service().call('GET', `/v1/usage${query}`, { key: by });
    const one = (await usage(`?from=${today}`)).body.data.days;
    const { size, duration } = ended[0].outputFile;
    expect(one).toEqual([
      {
        ...{ day: today, jobs: 3, failed: 1, bytesIn: 2 * ended[0].inputFile.size, bytesOut: size },
        audioSeconds: expect.closeTo(duration + ended[2].inputFile.duration, 2),
        processorSeconds: expect.any(Number),
      },
    ]);
    expect(one[0].processorSeconds).toBeGreaterThan(0);
    // Filed again by every list of states.
    await service().call('GET', '/v1/jobs?status=completed', { key });
    expect((await usage(`?from=${today}`)).body.data.days).toEqual(one);
    const { days } = (await usage('?from=2020-01-01')).body.data;
    expect([days.length, days.at(-1)]).toEqual([90, one[0]]);
    expect(days[0]).toMatchObject({ jobs: 0, processorSeconds: 0 });
    expect((await usage('')).body.data).not.toHaveProperty('days');
    const strangers = (await usage(`?from=${today}`, await service().newKey())).body.data.days;
    expect(strangers[0].jobs).toBe(0);
    for (const bad of ['?from=yesterday', '?from=2026-02-02&to=2026-02-01']) {
      expect((await usage(bad)).body.error.code).toBe('INVALID_REQUEST');
    }
  });

  it('keeps a day for 90 days, in one small hash', async () => {
    const key = await quiet().newKey();
    const url = `http://127.0.0.1:${quiet().outside.port}/a`;
    await quiet().call('DELETE', `/v1/jobs/${await quiet().submit(job(url), { key })}`, { key });
    const today = new Date().toISOString().slice(0, 10);
    const { days } = (await quiet().call('GET', `/v1/usage?to=${today}`, { key })).body.data;
    expect(days.at(-1)).toMatchObject({ jobs: 1, failed: 1, bytesIn: 0 });
    const redis = connectPatiently(quiet().redis.url);
    try {
      const [name = '', ...more] = await redis.keys(ownKey('usage', key.split('_')[1] ?? '', '*'));
      expect(more).toEqual([]);
      const leftDays = (await redis.ttl(name)) / 86_400;
      expect(leftDays).toBeGreaterThan(89);
      expect(leftDays).toBeLessThanOrEqual(91);
    } finally {
      await closeRedis(redis);
    }
  });

  it('says what the key is, used and may use', async () => {
    const key = await quiet().newKey({ name: 'usage', scopes: ['extract', 'read'], instances: ['main'] });
    const url = `http://127.0.0.1:${quiet().outside.port}/a`;
    const ids = [await quiet().submit(job(url), { key }), await quiet().submit(job(url), { key })];
    await quiet().call('DELETE', `/v1/jobs/${ids[0]}`, { key });
    const upload = { 'Tus-Resumable': '1.0.0', 'Upload-Length': '1000' };
    for (let nth = 0; nth < 2; nth += 1) {
      expect((await quiet().call('POST', '/v1/uploads', { key, headers: upload })).status).toBe(201);
    }
    const stream = await Stream.ofKey({ url: quiet().url, key });
    const { status, headers, body } = await quiet().call('GET', '/v1/usage', { key });
    expect(status).toBe(200);
    expect(headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    expect(body).toEqual({
      success: true,
      data: {
        key: { id: key.split('_')[1], name: 'usage', scopes: ['extract', 'read'], instances: ['main'] },
        submissions: { limit: 100_000, remaining: 99_998, resetSeconds: expect.any(Number) },
        // The cancellation, two uploads, the stream, and this very request.
        reads: { limit: 1_000_000, remaining: 999_995, resetSeconds: expect.any(Number) },
        recordBytes: {
          limit: 16 * 1024 ** 2,
          remaining: expect.any(Number),
          resetSeconds: expect.any(Number),
        },
        transcriptSeconds: null,
        processorSeconds: null,
        unfinishedJobs: { limit: 100_000, used: 1, remaining: 99_999 },
        uploads: { limit: 200, used: 2, remaining: 198 },
        uploadBytes: { limit: 50 * 1024 ** 3, used: 2000, remaining: 50 * 1024 ** 3 - 2000 },
        eventStreams: { limit: 50, used: 1, remaining: 49 },
        streamRequests: {
          perHost: { atOnce: 8, perSecond: 40 },
          perJob: { requests: 2000, redirects: 512 },
          hosts: [],
        },
      },
    });
    expect(body.data.submissions.resetSeconds).toBeGreaterThan(0);
    expect(body.data.submissions.resetSeconds).toBeLessThanOrEqual(60);
    stream.response.destroy();
  });
});

describe('A4. POST /v1/jobs/{jobId}/voice-message', () => {
  const ADA = '12025550101';
  const HEDY = '12025550102';
  const send = (jobId: string, json: object, more: Json = {}): Promise<Answer> =>
    service().call('POST', `/v1/jobs/${jobId}/voice-message`, { json, ...more });
  const arrived = async (number: string): Promise<Json[]> => {
    const path = `/inbox/api/instances/main/chats/${number}@people.loopback/messages`;
    return (await service().gateway('GET', path)).body;
  };
  const sent = (jobId: string): Promise<Json> =>
    until('the voice message is sent', async () => {
      const { voiceMessage } = await service().job(jobId);
      return voiceMessage.status === 'sent' && voiceMessage.messageStatus === 'DELIVERY_ACK' && voiceMessage;
    });

  it('sends a finished result, and sends it again', async () => {
    const { jobId } = await service().run(job(tone));
    const { status, body } = await send(jobId, { instance: 'main', number: ADA });
    expect(status).toBe(202);
    expect(body).toEqual({
      success: true,
      data: {
        jobId,
        voiceMessage: {
          status: expect.stringMatching(/^(pending|sending|sent)$/),
          attempts: expect.any(Number),
          key: body.data.voiceMessage.key,
          messageStatus: body.data.voiceMessage.messageStatus,
          fitsVoiceBubble: null,
          error: null,
        },
      },
    });
    const first = await sent(jobId);
    expect((await send(jobId, { instance: 'main', number: HEDY })).status).toBe(202);
    const second = await until('the second one is sent', async () => {
      const { voiceMessage } = await service().job(jobId);
      return voiceMessage.status === 'sent' && voiceMessage.key.id !== first.key.id && voiceMessage;
    });
    expect((await arrived(ADA)).filter(({ key }) => key.id === first.key.id)).toHaveLength(1);
    expect((await arrived(HEDY)).filter(({ key }) => key.id === second.key.id)).toHaveLength(1);
  });

  it('of a submission is told with voice.updated, and shows how far it has come', async () => {
    const hook = service().outside.hook('voice');
    const { jobId } = await service().run({
      ...job(tone),
      options: { webhook: hook.url, voiceMessage: { instance: 'main', number: ADA } },
    });
    const voiceMessage = await sent(jobId);
    expect(voiceMessage).toEqual({
      status: 'sent',
      attempts: 1,
      key: { remoteJid: `${ADA}@people.loopback`, fromMe: true, id: expect.any(String) },
      messageStatus: 'DELIVERY_ACK',
      fitsVoiceBubble: true,
      error: null,
    });
    const told = await hook.got(2);
    const { body } = await service().call('GET', '/v1/webhooks/secret');
    // Each is sent by itself, and may come before the other.
    const payloads = told
      .map(({ headers, text }) => new Webhook(body.data.secret).verify(text, { ...headers }) as Json)
      .toSorted((a, b) => a.event.localeCompare(b.event));
    expect(payloads.map(({ event }) => event)).toEqual(['job.completed', 'voice.updated']);
    expect(payloads[1]).toEqual({
      event: 'voice.updated',
      jobId,
      timestamp: expect.stringMatching(/Z$/),
      voiceMessage: {
        ...voiceMessage,
        // As it was at that moment.
        messageStatus: expect.stringMatching(/^(PENDING|SERVER_ACK|DELIVERY_ACK)$/),
      },
    });
    expect(new Set(told.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
  });

  it('that the gateway refuses is failed, with the reason, at the first try', async () => {
    const { jobId } = await service().run({
      ...job(tone),
      options: { voiceMessage: { instance: 'nobody', number: ADA } },
    });
    const { voiceMessage, status } = await until('the sending has failed', async () => {
      const now = await service().job(jobId);
      return now.voiceMessage.status === 'failed' && now;
    });
    expect(status).toBe('completed');
    expect(voiceMessage).toMatchObject({
      attempts: 1,
      key: null,
      error: { code: 'instance_not_found', message: expect.stringMatching(/\S/) },
    });
  });

  it('of a failed job is failed with JOB_FAILED', async () => {
    const { jobId, voiceMessage } = await service().run({
      ...job(`http://127.0.0.1:${service().outside.port}/missing.mp4`),
      options: { voiceMessage: { instance: 'main', number: ADA } },
    });
    expect(voiceMessage).toMatchObject({ status: 'failed', error: { code: 'JOB_FAILED' } });
    const { status, body } = await send(jobId, { instance: 'main', number: ADA });
    expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
  });

  it('of a job that has not finished, or whose file is gone, is refused', async () => {
    const slow = await service().outside.stalling('unsent.mp4', clip('tone.mp4'));
    const running = await service().submit(job(slow.url));
    const early = await send(running, { instance: 'main', number: ADA });
    expect([early.status, early.body.error.code]).toEqual([202, 'JOB_NOT_COMPLETED']);
    slow.letGo();
    await service().ended(running);
    await service().call('DELETE', `/v1/jobs/${running}`);
    const late = await send(running, { instance: 'main', number: ADA });
    expect([late.status, late.body.error.code]).toEqual([410, 'FILE_EXPIRED']);
  });

  it('demands what it needs, and the scope', async () => {
    const { jobId } = await service().run(job(tone));
    const faulty = await send(jobId, { instance: 'main', audio: 'x' });
    expect(faulty.body.error).toMatchObject({
      code: 'INVALID_REQUEST',
      details: expect.stringMatching(/(?=.*number: )(?=.*audio: )/),
    });
    const weak = await service().newKey({ scopes: ['extract', 'read'] });
    const mine = await service().submit(job(tone), { key: weak });
    expect((await send(mine, { instance: 'main', number: ADA }, { key: weak })).status).toBe(403);
  });
});
