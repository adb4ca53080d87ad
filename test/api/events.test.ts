import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { useClips, useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const clip = useClips('tone.mp4');
const service = useService({ environment: { WORKER_CONCURRENCY: '4', DOWNLOADS_AHEAD: '0' } });

let tone = '';

beforeAll(async () => {
  tone = await service().outside.file('tone.mp4', clip('tone.mp4'));
});

const request = (url: string): object => ({ source: { type: 'url', url }, output: { format: 'mp3' } });

describe('A4. GET /v1/jobs/{jobId}/events', () => {
  it('sends the state of now first, then each change, and closes after the end', async () => {
    const slow = await service().outside.stalling('slow.mp4', clip('tone.mp4'));
    const jobId = await service().submit(request(slow.url));
    await service().reaches(jobId, 'processing');
    const stream = await Stream.open(jobId, service());
    expect(stream.response.statusCode).toBe(200);
    expect(stream.response.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/event-stream/),
      'cache-control': 'no-store',
    });
    await stream.got(1);
    expect(stream.events[0]).toMatchObject({ event: 'job', data: { jobId, status: 'processing' } });
    slow.letGo();
    await stream.ended;
    const job = await service().job(jobId);
    expect(stream.events.at(-1)).toMatchObject({ event: 'job', data: job });
    expect(job.status).toBe('completed');
    expect(stream.events.every(({ event }) => event === 'job')).toBe(true);
    expect(stream.events.slice(0, -1).every(({ data }) => data.status === 'processing')).toBe(true);
    const ids = stream.events.map(({ id }) => id);
    expect(ids.every(Number.isInteger)).toBe(true);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(ids.at(-1)).toBeGreaterThan(ids.at(0) ?? 0);
  });

  it('of a job that has ended sends its state once and closes', async () => {
    const { jobId } = await service().run(request(`http://127.0.0.1:${service().outside.port}/missing.mp4`));
    const stream = await Stream.open(jobId, service());
    await stream.ended;
    expect(stream.events).toHaveLength(1);
    expect(stream.events[0]?.data).toEqual(await service().job(jobId));
    expect(stream.events[0]?.data).toMatchObject({ status: 'failed', error: { code: 'DOWNLOAD_FAILED' } });
  });

  it('Last-Event-ID of the last event is answered with 204, of an earlier one with the state of now', async () => {
    const { jobId } = await service().run(request(tone));
    const first = await Stream.open(jobId, service());
    await first.ended;
    const lastId = String(first.events.at(-1)?.id);
    const again = await Stream.open(jobId, service(), { 'last-event-id': lastId });
    expect(again.response.statusCode).toBe(204);
    const earlier = await Stream.open(jobId, service(), { 'last-event-id': '3' });
    await earlier.ended;
    expect(earlier.events).toEqual(first.events);
    const nonsense = await Stream.open(jobId, service(), { 'last-event-id': 'nonsense' });
    await nonsense.ended;
    expect(nonsense.events).toEqual(first.events);
  });

  it('tells of a cancellation', async () => {
    const slow = await service().outside.stalling('cancelled.mp4', clip('tone.mp4'));
    const jobId = await service().submit(request(slow.url));
    const stream = await Stream.open(jobId, service());
    await stream.got(1);
    await service().call('DELETE', `/v1/jobs/${jobId}`);
    await stream.ended;
    expect(stream.events.at(-1)?.data).toMatchObject({ status: 'failed', error: { code: 'JOB_CANCELLED' } });
  });

  it('several may watch one job, and one who leaves disturbs nobody', async () => {
    const slow = await service().outside.stalling('watched.mp4', clip('tone.mp4'));
    const jobId = await service().submit(request(slow.url));
    const streams = await Promise.all([1, 2, 3].map(() => Stream.open(jobId, service())));
    await Promise.all(streams.map((stream) => stream.got(1)));
    streams[0]?.close();
    slow.letGo();
    await Promise.all(streams.slice(1).map(({ ended }) => ended));
    for (const { events } of streams.slice(1)) {
      expect(events.at(-1)?.data.status).toBe('completed');
    }
  });

  it('HEAD answers at once, and the connection is free for the next request', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const slow = await service().outside.stalling('asked.mp4', clip('tone.mp4'));
    const jobId = await service().submit(request(slow.url));
    const ask = async (method: string, path: string): Promise<number | undefined> => {
      const asked = get(`${service().url}${path}`, {
        agent,
        method,
        headers: { 'x-api-key': service().key },
      });
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      await response.toArray();
      return response.statusCode;
    };
    expect(await ask('HEAD', `/v1/jobs/${jobId}/events`)).toBe(200);
    expect(await ask('GET', `/v1/jobs/${jobId}`)).toBe(200);
    agent.destroy();
    slow.letGo();
    await service().ended(jobId);
  });
});
