/** A4. GET /v1/events: all jobs of a key. */

import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { closeRedis } from 'soundpost-kit/redis/connection';
import { connectPatiently } from 'soundpost-testing/patient-redis';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PendingJobs } from '../../src/api/routes/events.ts';
import { type Json, useClips, useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const LIMIT = 3;
const clip = useClips('tone.mp4');
const service = useService({ environment: { EVENT_STREAMS_PER_KEY: `${LIMIT}` } });

const open: Stream[] = [];
afterEach(() => {
  for (const stream of open.splice(0)) stream.close();
});
let tone = '';
beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
});

async function watch(key = service().key): Promise<Stream> {
  const stream = await Stream.ofKey({ url: service().url, key });
  open.push(stream);
  return stream;
}

const request = (url = tone): object => ({ source: { type: 'url', url }, output: { format: 'mp3' } });
const jobsOf = ({ events }: Stream): Json[] =>
  events.filter(({ event }) => event === 'job').map(({ data }) => data);
const shows = (stream: Stream, jobId: string, status: string): Promise<unknown> =>
  until(`${jobId} is shown as ${status}`, () =>
    jobsOf(stream).some((job) => job.jobId === jobId && job.status === status),
  );

describe('what is to be sent', () => {
  const taken = (pending: PendingJobs): string[] => {
    const next = pending.take();
    return next === undefined ? [] : [next, ...taken(pending)];
  };

  it('is each job once, and nothing that the list after a reset has', () => {
    const pending = new PendingJobs();
    pending.changed('early');
    expect(taken(pending)).toEqual(['reset']);
    for (const jobId of ['a', 'b', 'a']) pending.changed(jobId);
    expect(taken(pending)).toEqual(['a', 'b']);
    pending.changed('a');
    expect(taken(pending)).toEqual(['a']);
  });

  it('is a reset in place of very many jobs', () => {
    const pending = new PendingJobs();
    pending.take();
    for (let nth = 0; nth < 1500; nth += 1) pending.changed(`job ${nth}`);
    expect(taken(pending)).toEqual(['reset']);
  });
});

describe('A4. GET /v1/events', () => {
  it('begins with a reset, then sends a job when it is new and whenever it changes, and does not close', async () => {
    const key = await service().newKey();
    const stream = await watch(key);
    expect(stream.response.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/event-stream/),
      'cache-control': 'no-store',
    });
    expect(stream.events).toMatchObject([{ event: 'reset', data: {} }]);

    const slow = await service().outside.stalling('watched-key.mp4', clip('tone.mp4'));
    const jobId = await service().submit(request(slow.url), { key });
    await shows(stream, jobId, 'processing');
    slow.letGo();
    await shows(stream, jobId, 'completed');
    expect(jobsOf(stream).at(-1)).toEqual(await service().job(jobId, { key }));
    expect(stream.events.map(({ id }) => id).every(Number.isNaN)).toBe(true);

    await service().call('DELETE', `/v1/jobs/${jobId}`, { key });
    await until('the erased file is shown', () => {
      const { outputFile } = jobsOf(stream).at(-1) ?? {};
      return outputFile && outputFile.url === undefined;
    });

    const again = await service().submit(request(), { key });
    await shows(stream, again, 'completed');
    expect(new Set(jobsOf(stream).map((job) => job.jobId))).toEqual(new Set([jobId, again]));
  });

  it('shows each job of a batch, and never one of another key', async () => {
    const [mine, theirs] = await Promise.all([service().newKey(), service().newKey()]);
    const [stream, other] = await Promise.all([watch(mine), watch(theirs)]);
    const stalling = await Promise.all(
      ['b1', 'b2', 'b3'].map((name) => service().outside.stalling(`${name}.mp4`, clip('tone.mp4'))),
    );
    const json = { jobs: stalling.map(({ url }) => request(url)) };
    const { body } = await service().call('POST', '/v1/batch', { key: mine, json });
    const ids: string[] = body.data.jobs.map(({ jobId }: Json) => jobId);
    await until('all are shown', () => {
      const shown = new Set(jobsOf(stream).map(({ jobId }) => jobId));
      return ids.every((jobId) => shown.has(jobId));
    });
    for (const { letGo } of stalling) letGo();
    await Promise.all(ids.map((jobId) => shows(stream, jobId, 'completed')));

    const own = await service().submit(request(), { key: theirs });
    await shows(other, own, 'completed');
    expect(new Set(jobsOf(other).map(({ jobId }) => jobId))).toEqual(new Set([own]));
    expect(jobsOf(stream).every(({ jobId }) => ids.includes(jobId))).toBe(true);
  });

  it('counts with the other streams of the key', async () => {
    const key = await service().newKey();
    for (let nth = 0; nth < LIMIT; nth += 1) await watch(key);
    const refused = await service().call('GET', '/v1/events', { key });
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } });
    open.at(-1)?.close();
    await until('there is room again', async () => (await watch(key)).response.statusCode === 200);
  });

  it('HEAD answers at once and holds none', async () => {
    const key = await service().newKey();
    for (let nth = 0; nth <= LIMIT; nth += 1) {
      const { status, headers } = await service().call('HEAD', '/v1/events', { key });
      expect([status, headers['content-type']]).toEqual([200, expect.stringMatching(/^text\/event-stream/)]);
    }
    await watch(key);
  });

  it('ends when the key is revoked, as the stream of a job does', async () => {
    const slow = await service().outside.stalling('revoked.mp4', clip('tone.mp4'));
    const key = await service().newKey();
    const jobId = await service().submit(request(slow.url), { key });
    const streams = [await watch(key), await Stream.open(jobId, { url: service().url, key })];
    await streams[1]?.got(1);
    const comments = streams.map((stream) => stream.comments);
    await service().revokeKey(key);
    await Promise.all(streams.map(({ ended }) => ended));
    // At the message, not at the look that comes with the next comment.
    expect(streams.map((stream) => stream.comments)).toEqual(comments);
  });

  it('sends a reset when messages of Redis may have been lost, and goes on', async () => {
    const key = await service().newKey();
    const stream = await watch(key);
    const redis = connectPatiently(service().redis.url);
    expect(await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')).toBeGreaterThan(0);
    await until('a second reset', () => stream.events.filter(({ event }) => event === 'reset').length > 1);
    await closeRedis(redis);
    await shows(stream, await service().submit(request(), { key }), 'completed');
  });

  it('a reader who stands still is sent the last state of what has changed meanwhile', async () => {
    const key = await service().newKey();
    const asked = get(`${service().url}/v1/events`, { headers: { 'x-api-key': key } });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.pause();
    const { jobId } = await service().run(request(), { key });
    const stream = new Stream(response);
    open.push(stream);
    await shows(stream, jobId, 'completed');
  });
});
