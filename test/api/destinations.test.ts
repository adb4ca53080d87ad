/** Finished files on their way to a bucket (decisions A8), through the whole service: what arrives, what is told, and what each answer means. */

import { WebhookEvent } from 'soundpost-contract/webhook-events';
import { Bucket } from 'soundpost-testing/bucket';
import { until } from 'soundpost-testing/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { dumpRedis } from '../end-to-end/redis-dump.ts';
import { type Json, useClips, useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const clip = useClips('tone.mp4');
const service = useService({ environment: { WEBHOOK_SCHEDULE_SECONDS: '0,0.3,0.6' } });

let tone = '';
beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
});

let nth = 0;
interface Place {
  readonly bucket: Bucket;
  readonly path: string;
  readonly url: string;
}

/** A bucket that takes objects at one path, or at several. */
function place(...names: string[]): Place {
  nth += 1;
  const bucket = new Bucket();
  const paths = (names.length === 0 ? ['talk.mp3'] : names).map((name) => `/bucket${nth}/${name}`);
  const [url = ''] = paths.map((path) => service().outside.on(path, bucket.handle));
  return { bucket, path: paths[0] ?? '', url };
}

const job = (destination: object, more: object = {}): object => ({
  source: { type: 'url', url: tone },
  output: { format: 'mp3' },
  destination,
  ...more,
});

/** The job once nothing more is put. */
const settled = (jobId: string): Promise<Json> =>
  until(`${jobId} is put, or is not`, async () => {
    const now = await service().job(jobId);
    return ['completed', 'failed'].includes(now.destination?.status) && now;
  });
const settledAs = (jobId: string, status: string): Promise<Json> =>
  until(`${jobId} is ${status}`, async () => {
    const now = await service().job(jobId);
    return now.destination.status === status && now;
  });
const run = async (request: object): Promise<Json> => settled(await service().submit(request));

const digestOf = (sha256: string): string => `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`;

describe('a finished file', () => {
  it('is put whole, with its length, type and digest, and the job says so', async () => {
    const { bucket, path, url } = place();
    const hook = service().outside.hook('put');
    const ended = await run(
      job({ url: `${url}?signature=abc%2F` }, { options: { filename: 'talk', webhook: hook.url } }),
    );
    const { outputFile } = ended;
    expect(ended).toMatchObject({
      status: 'completed',
      destination: { url, status: 'completed', error: null },
    });
    expect(outputFile.destination).toEqual({ url, status: 'completed', error: null });
    expect(bucket.puts).toMatchObject([
      {
        target: `${path}?signature=abc%2F`,
        isWhole: true,
        sizeBytes: outputFile.size,
        sha256: outputFile.sha256,
        headers: {
          'content-length': String(outputFile.size),
          'content-type': 'audio/mpeg',
          'repr-digest': digestOf(outputFile.sha256),
        },
      },
    ]);
    const told = await until('the webhook is told', () =>
      hook.received.find(({ json }) => json.event === 'destination.updated'),
    );
    expect(WebhookEvent.parse(told.json)).toEqual(told.json);
    expect(told.json).toEqual({
      event: 'destination.updated',
      jobId: ended.jobId,
      timestamp: expect.any(String),
      name: 'audio',
      destination: { url, status: 'completed', error: null },
    });
    const { body } = await service().call('GET', `/v1/jobs/${ended.jobId}/deliveries`);
    const { deliveries } = body.data;
    expect(deliveries.map(({ kind, event = kind }: Json) => event).toSorted()).toEqual([
      'destination',
      'destination.updated',
      'job.completed',
    ]);
    expect(deliveries.find(({ kind }: Json) => kind === 'destination')).toEqual({
      ...{ deliveryId: `${ended.jobId}-destination-audio`, kind: 'destination', name: 'audio' },
      ...{ status: 'delivered', nextAttemptAt: null },
      attempts: [{ at: expect.any(String), httpStatus: 200, latencyMs: expect.any(Number), error: null }],
    });
  });

  it('goes with the headers that were given, whose Content-Type takes the place of ours', async () => {
    const { bucket, url } = place();
    const { destination } = await run(
      job({ url, headers: { 'Content-Type': 'audio/x-mine', 'x-ms-blob-type': 'BlockBlob' } }),
    );
    expect(bucket.puts[0]?.headers).toMatchObject({
      'content-type': 'audio/x-mine',
      'x-ms-blob-type': 'BlockBlob',
    });
    expect(destination.headers).toEqual(['Content-Type', 'x-ms-blob-type']);
  });

  it('of the voice format is put, the rendition for a chat is not', async () => {
    const { bucket, url } = place('talk.ogg');
    const ended = await run(
      job(
        { url },
        {
          output: { format: 'voice' },
          options: { voiceMessage: { instance: 'main', number: '+12025550101' } },
        },
      ),
    );
    expect(bucket.puts.map(({ sha256 }) => sha256)).toEqual([ended.outputFile.sha256]);
  });

  it('is followed by the event stream of the job to its end', async () => {
    const { bucket, url } = place();
    const gate = Promise.withResolvers<void>();
    bucket.answer = async () => {
      await gate.promise;
      return { status: 201 };
    };
    const jobId = await service().submit(job({ url }));
    const stream = await Stream.open(jobId, service());
    await until('the job is completed', () =>
      stream.events.some(({ data }) => data.status === 'completed' && data.destination.status === 'pending'),
    );
    const pendingId = stream.events.at(-1)?.id;
    gate.resolve();
    await stream.ended;
    expect(stream.events.at(-1)?.data).toEqual(await service().job(jobId));
    expect(stream.events.at(-1)?.data.destination.status).toBe('completed');
    expect(stream.events.at(-1)?.id).toBeGreaterThan(pendingId ?? Number.POSITIVE_INFINITY);
    const again = await Stream.open(jobId, service(), { 'last-event-id': String(pendingId) });
    await again.ended;
    expect(again.events).toHaveLength(1);
  });
});

describe('several outputs', () => {
  const outputs = [
    { name: 'full', format: 'mp3' },
    { name: 'small', format: 'opus' },
    { name: 'peaks', format: 'waveform' },
  ];

  it('are put to one address each, by their names', async () => {
    const { bucket, url } = place('full.mp3', 'small.opus', 'peaks.json');
    const template = url.replace('full.mp3', '{name}.{extension}');
    const ended = await run(job({ url: `${template}?sig=abc` }, { output: undefined, outputs }));
    expect(ended.destination).toEqual({ url: template, status: 'completed', error: null });
    expect([...bucket.objects].map(([path, { sha256 }]) => [path.split('/')[2], sha256]).toSorted()).toEqual(
      ended.outputFiles
        .map(({ name, filename, sha256 }: Json) => [`${name}.${filename.split('.').at(-1)}`, sha256])
        .toSorted(),
    );
    expect(ended.outputFiles.map(({ destination }: Json) => destination.status)).toEqual([
      'completed',
      'completed',
      'completed',
    ]);
  });

  it('go where each says; one that fails is told of by its own name', async () => {
    const full = place('full.mp3');
    const rest = place('small.opus', 'peaks.json');
    const hook = service().outside.hook('several');
    rest.bucket.answer = (_nth, { url = '' }) => ({ status: url.endsWith('.json') ? 403 : 200 });
    const ended = await run(
      job(
        { url: rest.url.replace('small.opus', '{name}.{extension}') },
        {
          output: undefined,
          outputs: [{ ...outputs[0], destination: { url: full.url } }, outputs[1], outputs[2]],
          options: { webhook: hook.url },
        },
      ),
    );
    expect([full.bucket.objects.size, rest.bucket.objects.size]).toEqual([1, 1]);
    expect(ended.destination).toMatchObject({
      status: 'failed',
      error: { code: 'DESTINATION_FAILED', message: expect.stringMatching(/^peaks: .*403/) },
    });
    // Where each lies, not where the job was to put them.
    expect(ended.outputFiles.map(({ destination }: Json) => destination.url.split('/').at(-1))).toEqual([
      'full.mp3',
      'small.opus',
      'peaks.json',
    ]);
    expect(ended.destination.url).toMatch(/\/\{name\}\.\{extension\}$/);
    const told = await until('three are told of', () => {
      const updates = hook.received.filter(({ json }) => json.event === 'destination.updated');
      return updates.length === 3 && updates;
    });
    expect(told.map(({ json }) => [json.name, json.destination.status]).toSorted()).toEqual([
      ['full', 'completed'],
      ['peaks', 'failed'],
      ['small', 'completed'],
    ]);
  });
});

describe('an answer of the bucket', () => {
  it('403, of an address that has expired, is told; the job is completed and its file is there', async () => {
    const { bucket, url } = place();
    bucket.answer = () => ({ status: 403 });
    const ended = await run(job({ url: `${url}?signature=abc` }));
    expect(ended).toMatchObject({
      status: 'completed',
      destination: {
        status: 'failed',
        error: { code: 'DESTINATION_FAILED', message: 'the destination answered with status 403' },
      },
    });
    expect(bucket.puts).toHaveLength(1);
    expect((await service().call('GET', `/v1/status/${ended.jobId}`)).body).toMatchObject({ success: true });
    const { status, bytes } = await service().call('GET', `/v1/download/${ended.jobId}`);
    expect([status, bytes.length]).toEqual([200, ended.outputFile.size]);
  });

  /** A job whose outputs go to a bucket each, which answers as the statuses say, one after the other. */
  async function answered(
    ...rows: readonly (readonly number[])[]
  ): Promise<{ ended: Json; tries: number[] }> {
    const places = rows.map((statuses) => {
      const to = place();
      to.bucket.answer = (time) => ({ status: statuses[time - 1] ?? 201 });
      return to;
    });
    const outputs = [
      { name: 'first', format: 'wav' },
      ...places.map(({ url }, at) => ({ name: `n${at}`, format: 'waveform', destination: { url } })),
    ];
    const jobId = await service().submit({ source: { type: 'url', url: tone }, outputs });
    const ended = await until('each is put, or is not', async () => {
      const now = await service().job(jobId);
      const [, ...put] = now.outputFiles;
      return put.length > 0 && put.every((one: Json) => one.destination.status !== 'pending') && now;
    });
    return { ended, tries: places.map(({ bucket }) => bucket.puts.length) };
  }

  it('of a refusal is final', async () => {
    const statuses = [400, 401, 404, 409, 411, 412];
    const { ended, tries } = await answered(...statuses.map((status) => [status]));
    const [, ...put] = ended.outputFiles;
    expect(put.map(({ destination }: Json) => destination.error.message)).toEqual(
      statuses.map((status) => `the destination answered with status ${status}`),
    );
    expect(tries).toEqual(statuses.map(() => 1));
  });

  it('of an outage is followed by as many tries as the schedule has, and is a failure then', async () => {
    const statuses = [408, 425, 429, 500, 502, 504];
    const { ended, tries } = await answered(...statuses.map((status) => [status, status]), [503, 503, 503]);
    const [, ...put] = ended.outputFiles;
    expect(put.map(({ destination }: Json) => destination.error?.message ?? destination.status)).toEqual([
      ...statuses.map(() => 'completed'),
      'the destination answered with status 503',
    ]);
    expect(tries).toEqual([3, 3, 3, 3, 3, 3, 3]);
  });

  it('that leads elsewhere is a failure, and nothing goes there', async () => {
    const { bucket, url } = place();
    const elsewhere = place();
    bucket.answer = () => ({ status: 307, headers: { location: elsewhere.url } });
    expect((await run(job({ url }))).destination.error.message).toBe(
      'the destination answered with status 307; redirects are not followed',
    );
    expect(elsewhere.bucket.begun).toBe(0);
  });

  it('that is none, since the connection breaks, is followed by another try', async () => {
    const { bucket, url } = place();
    bucket.onBytes = (_bytes, request) => {
      if (bucket.begun < 3) request.socket.resetAndDestroy();
    };
    expect((await run(job({ url }))).destination.status).toBe('completed');
    expect(bucket.begun).toBe(3);
  });
});

describe('a replay', () => {
  const SECRET = 'CANARYb5d1ec8f27';
  const replay = (jobId: string, name: string, json?: object, key?: string) =>
    service().call('POST', `/v1/jobs/${jobId}/destinations/${name}/replay`, {
      ...(json && { json }),
      ...(key !== undefined && { key }),
    });

  it('puts the file to a new address with new headers, which are sealed as the old ones were', async () => {
    const expired = place();
    const fresh = place('fresh-audio.mp3');
    expired.bucket.answer = () => ({ status: 403 });
    const ended = await run(job({ url: `${expired.url}?signature=old`, headers: { 'x-old': SECRET } }));
    expect(ended.destination.status).toBe('failed');
    const { status, body } = await replay(ended.jobId, 'audio', {
      url: `${fresh.url.replace('audio.mp3', '{name}.{extension}')}?signature=${SECRET}`,
      headers: { 'x-new': SECRET },
    });
    expect(status).toBe(202);
    expect(body.data.deliveries).toContainEqual(
      expect.objectContaining({ deliveryId: `${ended.jobId}-destination-audio`, kind: 'destination' }),
    );
    const again = await until('it is put', async () => {
      const now = await service().job(ended.jobId);
      return now.outputFile.destination.status === 'completed' && now;
    });
    expect(again.outputFile.destination).toMatchObject({ url: fresh.url, headers: ['x-new'] });
    expect(fresh.bucket.puts).toMatchObject([
      {
        target: `${fresh.path}?signature=${SECRET}`,
        sha256: ended.outputFile.sha256,
        headers: { 'x-new': SECRET },
      },
    ]);
    expect(fresh.bucket.puts[0]?.headers).not.toHaveProperty('x-old');
    const kept = [...(await dumpRedis(service().redis.socketPath))].map(([key, text]) => key + text);
    expect(kept.filter((text) => text.includes(SECRET))).toEqual([]);
    expect(body).not.toContain(SECRET);
  });

  it('without a body puts it where it went before, and headers go to no other origin', async () => {
    const { bucket, path, url } = place('talk.mp3', 'other.mp3');
    bucket.answer = (time) => ({ status: time === 1 ? 403 : 200 });
    const { jobId } = await run(job({ url: `${url}?s=1`, headers: { 'x-mine': 'one' } }));
    await replay(jobId, 'audio');
    await bucket.got(2);
    await settledAs(jobId, 'completed');
    await replay(jobId, 'audio', { url: `${url.replace('talk', 'other')}?s=2` });
    await bucket.got(3);
    await settledAs(jobId, 'completed');
    await replay(jobId, 'audio', { url: `${url.replace('http:', 'https:')}?s=3` });
    expect((await service().job(jobId)).outputFile.destination).not.toHaveProperty('headers');
    expect(bucket.puts.map(({ target, headers }) => [target, headers['x-mine']])).toEqual([
      [`${path}?s=1`, 'one'],
      [`${path}?s=1`, 'one'],
      [`${path.replace('talk', 'other')}?s=2`, 'one'],
    ]);
  });

  it('to a new address ends a put that hangs', async () => {
    const hole = place();
    const fresh = place();
    hole.bucket.answer = () => new Promise(() => undefined);
    const jobId = await service().submit(job({ url: hole.url }));
    await until('the put has begun', () => hole.bucket.begun === 1);
    await replay(jobId, 'audio', { url: fresh.url });
    expect((await settled(jobId)).outputFile.destination).toMatchObject({
      url: fresh.url,
      status: 'completed',
    });
    expect([hole.bucket.begun, fresh.bucket.puts.length]).toEqual([1, 1]);
  });

  it('is refused where there is nothing to put, or no address', async () => {
    const { bucket, url } = place();
    const slow = await service().outside.stalling(`slow${nth}.mp4`, clip('tone.mp4'));
    const [one, several, bare, failed, unfinished] = await Promise.all([
      run(job({ url })),
      run(job({ url: `${url}{name}` }, { output: undefined, outputs: [{ name: 'full', format: 'mp3' }] })),
      service().run({ source: { type: 'url', url: tone }, output: { format: 'mp3' } }),
      service().run({ ...job({ url }), source: { type: 'url', url: `${tone}-missing` } }),
      service().submit({ ...job({ url }), source: { type: 'url', url: slow.url } }),
    ]);
    await until('all that is put was put', () => bucket.puts.length >= 1);
    const rows: [string, string, object | undefined, number, string, string?][] = [
      ['job_0123456789abcdef', 'audio', undefined, 404, 'JOB_NOT_FOUND'],
      [one.jobId, 'full', undefined, 404, 'NOT_FOUND'],
      [one.jobId, '__proto__', undefined, 404, 'NOT_FOUND'],
      [several.jobId, 'audio', undefined, 404, 'NOT_FOUND'],
      [bare.jobId, 'audio', { url }, 404, 'NOT_FOUND'],
      [failed.jobId, 'audio', undefined, 400, 'INVALID_REQUEST'],
      [unfinished, 'audio', { url }, 202, 'JOB_NOT_COMPLETED'],
      [one.jobId, 'audio', { url: 'http://10.0.0.1/a' }, 400, 'INVALID_REQUEST'],
      [one.jobId, 'audio', { url: '' }, 400, 'INVALID_REQUEST'],
      [one.jobId, 'audio', { address: url }, 400, 'INVALID_REQUEST'],
      [one.jobId, 'audio', { headers: { 'content-length': '1' } }, 400, 'INVALID_REQUEST'],
      [
        one.jobId,
        'audio',
        { headers: Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`x-${at}`, 'x'.repeat(1000)])) },
        400,
        'INVALID_REQUEST',
      ],
    ];
    for (const [jobId, name, json, status, code] of rows) {
      const answer = await replay(jobId, name, json);
      expect([name, answer.status, answer.body.error?.code]).toEqual([name, status, code]);
    }
    const key = await service().newKey({ scopes: ['extract', 'webhooks'] });
    const { body } = await service().call('POST', '/v1/extract', { json: job({ url }), key });
    for (const [json, status] of [
      [{ url }, 403],
      [{ headers: {} }, 202],
    ] as const) {
      await until('the job has ended', async () => {
        const answer = await replay(body.data.jobId, 'audio', json, key);
        return answer.body.error?.code !== 'JOB_NOT_COMPLETED' && answer.status === status;
      });
    }
    slow.letGo();
    await service().ended(unfinished);
    await service().call('DELETE', `/v1/jobs/${one.jobId}`);
    const gone = await replay(one.jobId, 'audio', { url });
    expect([gone.status, gone.body.error.code]).toEqual([410, 'FILE_EXPIRED']);
  });
});

describe('a job', () => {
  it('that fails puts nothing; its retry puts to the same place', async () => {
    const { bucket, path, url } = place();
    const missing = `http://127.0.0.1:${service().outside.port}/later${nth}.mp4`;
    const failed = await service().run({
      source: { type: 'url', url: missing },
      output: { format: 'mp3' },
      destination: { url: `${url}?signature=abc`, headers: { 'X-Mine': 'one' } },
    });
    expect(failed.destination).toEqual({
      url,
      headers: ['X-Mine'],
      status: 'failed',
      error: { code: 'DESTINATION_FAILED', message: 'the job itself failed' },
    });
    await service().outside.file(`later${nth}.mp4`, clip('tone.mp4'));
    const { body } = await service().call('POST', `/v1/jobs/${failed.jobId}/retry`);
    expect((await settled(body.data.jobId)).destination.status).toBe('completed');
    expect(bucket.puts).toMatchObject([{ target: `${path}?signature=abc`, headers: { 'x-mine': 'one' } }]);
  });

  it('whose files are erased is put no further', async () => {
    const { bucket, url } = place();
    bucket.answer = () => new Promise(() => undefined);
    const jobId = await service().submit(job({ url }));
    await until('the put has begun', () => bucket.begun === 1);
    await service().ended(jobId);
    await service().call('DELETE', `/v1/jobs/${jobId}`);
    const { destination } = await settled(jobId);
    expect(destination.error.message).toBe('the files of the job were erased before this one was put');
    expect(bucket.begun).toBe(1);
  });

  it('that is cancelled puts nothing', async () => {
    const { bucket, url } = place();
    const slow = await service().outside.stalling(`slow${nth}.mp4`, clip('tone.mp4'));
    const jobId = await service().submit({
      source: { type: 'url', url: slow.url },
      output: { format: 'mp3' },
      destination: { url },
    });
    await service().reaches(jobId, 'processing');
    await service().call('DELETE', `/v1/jobs/${jobId}`);
    expect((await service().ended(jobId)).destination.status).toBe('failed');
    slow.letGo();
    // What comes behind it has gone all the way that it would have gone.
    const later = place();
    expect((await run(job({ url: later.url }))).destination.status).toBe('completed');
    expect([bucket.begun, later.bucket.begun]).toEqual([0, 1]);
  });
});

describe('what is secret of a destination', () => {
  const SECRET = 'CANARY5d41402abc4b2a76b9719d911017c592';

  it('stands in no answer, and in Redis only encrypted', async () => {
    const { bucket, url } = place();
    const hook = service().outside.hook('secret');
    bucket.answer = (time) => ({ status: time < 3 ? 503 : 403 });
    const destination = {
      url: `${url}?X-Signature=${SECRET}`,
      headers: { Authorization: `Bearer ${SECRET}` },
    };
    const { jobId } = await run(
      job(destination, { options: { webhook: hook.url }, output: { format: 'mp3' } }),
    );
    expect(bucket.puts[0]?.headers.authorization).toContain(SECRET);
    const stream = await Stream.open(jobId, service());
    await stream.ended;
    const answers = await Promise.all(
      ['/v1/jobs', `/v1/jobs/${jobId}`, `/v1/status/${jobId}`, `/v1/jobs/${jobId}/deliveries`].map((path) =>
        service().call('GET', path),
      ),
    );
    const told = await until('the webhook is told', () =>
      hook.received.find(({ json }) => json.event === 'destination.updated'),
    );
    const seen = [
      ...answers.map(({ bytes }) => bytes.toString()),
      JSON.stringify(stream.events),
      ...hook.received.map(({ text }) => text),
      ...[...(await dumpRedis(service().redis.socketPath))].map(([key, content]) => `${key}\n${content}`),
    ];
    expect(told.json.destination.status).toBe('failed');
    expect(seen.filter((text) => text.includes(SECRET))).toEqual([]);
    expect(seen.join('\n')).not.toContain('X-Signature');
  });
});
