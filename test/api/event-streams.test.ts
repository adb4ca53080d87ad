/** A6. Open event streams per key: so many on all processes together, then 429. */

import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { RequestBudget } from 'soundpost-kit/redis/request-budget';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, it } from 'vitest';
import { SharedReads } from '../../src/api/event-streams.ts';
import { useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const LIMIT = 3;
/** Nobody works here, so a job stays as it is. */
const service = useService({ parts: [], environment: { EVENT_STREAMS_PER_KEY: `${LIMIT}` } });

const open: Stream[] = [];
afterEach(() => {
  for (const stream of open.splice(0)) stream.close();
});

async function watch(jobId: string, key = service().key): Promise<Stream> {
  const stream = await Stream.open(jobId, { url: service().url, key });
  open.push(stream);
  return stream;
}

const submit = (key?: string): Promise<string> => {
  const source = { type: 'url', url: `http://127.0.0.1:${service().outside.port}/a.mp4` };
  return service().submit({ source, output: { format: 'mp3' } }, key === undefined ? {} : { key });
};

it('one more is refused, until one of them is closed; other keys have their own', async () => {
  const jobId = await submit();
  for (let nth = 0; nth < LIMIT; nth += 1) expect((await watch(jobId)).response.statusCode).toBe(200);
  const refused = await service().call('GET', `/v1/jobs/${jobId}/events`);
  const { body } = await service().call('GET', '/v1/usage');
  expect(body.data.eventStreams).toEqual({ limit: LIMIT, used: LIMIT, remaining: 0 });
  expect(refused).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);

  const key = await service().newKey();
  expect((await watch(await submit(key), key)).response.statusCode).toBe(200);

  open[0]?.close();
  await until('there is room again', async () => (await watch(jobId)).response.statusCode === 200);
});

it('a HEAD holds none, nor does whoever has gone', async () => {
  const jobId = await submit();
  const headers = { 'x-api-key': service().key };
  for (let nth = 0; nth < LIMIT; nth += 1) {
    const asked = get(`${service().url}/v1/jobs/${jobId}/events`, { method: 'HEAD', headers });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
  }
  for (let nth = 0; nth < 20; nth += 1) {
    const asked = get(`${service().url}/v1/jobs/${jobId}/events`, { headers });
    asked.on('error', () => undefined);
    asked.once('socket', (socket) => socket.once('connect', () => setImmediate(() => asked.destroy())));
    await new Promise((resolve) => asked.once('close', resolve));
  }
  await until('a stream is opened', async () => (await watch(jobId)).response.statusCode === 200);
});

it('all who ask at once share one reading, and whoever asks later has a new one', async () => {
  const reads = new SharedReads<number>();
  let count = 0;
  const read = async (): Promise<number> => {
    count += 1;
    return count;
  };
  expect(await Promise.all([1, 2, 3].map(() => reads.read('a', read)))).toEqual([1, 1, 1]);
  expect(await reads.read('a', read)).toBe(2);
  await expect(reads.read('b', () => Promise.reject(new Error('away')))).rejects.toThrow('away');
  expect(await reads.read('b', read)).toBe(3);
  const first = new RequestBudget();
  const budgets = new SharedReads<RequestBudget>();
  const used = await first.run(() => budgets.read('a', async () => RequestBudget.current()));
  expect(used, 'the one who asks first pays for all').not.toBe(first);
});
