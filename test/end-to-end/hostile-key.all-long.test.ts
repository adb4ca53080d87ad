/**
 * One key does at once whatever its limits let it try: slow sources, uploads without end, wrong keys from everybody's address, event streams. Another key's
 * jobs and requests are answered as if it were alone, and Redis does not fill. All limits are the defaults.
 *
 * The slow sources and the open streams stay for the whole run: who waits for their places waits for as long as they drip, which is hours.
 * The flood of requests runs in every second turn, so that its cost is compared with what the same machine did a second before and after:
 * whatever else it does then slows both.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { byRun } from 'soundpost-testing/by-run';
import { Client } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { ffmpeg } from 'soundpost-testing/oracle';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { ServiceHome, soundpost } from 'soundpost-testing/service';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { promised } from '../faults/runs.ts';

/** Of the flood, and as many without it. Both together submit less in a minute than a key may. */
const TURNS = byRun({ all: 3, long: 25 });
const REQUESTS_PER_TURN = 40;
/** A job's time in the flood, over its time between two floods: 1.2 on an idle machine of two cores, 1.9 on one with a load of 32. */
const MOST_TIMES_SLOWER = 5;
/** The machine's own pauses are shorter by far. A place of the attacker's does not fall free in this time. */
const LONGEST_JOB_MS = 20_000;
/** Of 5 GB each within UPLOAD_BYTES_PER_KEY, and EVENT_STREAMS_PER_KEY. */
const OPEN_UPLOADS = 10;
const OPEN_STREAMS = 50;
const MOST_REDIS_BYTES = 20 * 1024 * 1024;

let server: TestRedis;
let redis: Redis;
let home: ServiceHome;
let sources: Server;
let port = 0;
let api = '';
let clip: Buffer;
const stop = new AbortController();

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis({ url: server.url, role: 'request', logger: createLogger('silent') });
  // Ten seconds, by its content.
  const made = await ffmpeg(
    '-f',
    'lavfi',
    '-i',
    'sine=440:duration=10',
    '-c:a',
    'aac',
    '-f',
    'matroska',
    '-',
  );
  clip = made.stdout;
  sources = createServer(async ({ url }, response) => {
    if (url === '/clip.mkv') return response.writeHead(200, { 'content-length': clip.length }).end(clip);
    // Just above what is broken off as too slow: 9 kB a second, for hours.
    response.writeHead(200, { 'content-length': 60_000_000 }).on('error', () => undefined);
    while (!stop.signal.aborted && !response.destroyed) {
      response.write(Buffer.alloc(1800));
      await sleep(200);
    }
    return response.destroy();
  }).listen(0, '127.0.0.1');
  await once(sources, 'listening');
  port = (sources.address() as AddressInfo).port;
  home = await ServiceHome.make({
    REDIS_URL: server.url,
    SECRET_KEY: 'a secret of the tests, which is of 32 bytes or more',
    OUTBOUND_ALLOW: `127.0.0.1:${port}`,
    RATE_SUBMIT_PER_MINUTE: '60',
    RATE_READ_PER_MINUTE: '3600',
  });
  ({ api } = await home.serve());
}, 120_000);
afterAll(async () => {
  stop.abort();
  sources.closeAllConnections();
  await home.remove();
  await closeRedis(redis);
  await server.close();
});

const newKey = (): Promise<string> =>
  home.run([...soundpost, 'keys', 'create', '--name', 'one']).says(/(sp_\w+)/);
const usedBytes = async (): Promise<number> =>
  Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);

/** From the submission to the event that says completed, ms. Whoever asks again and again until then comes near to the reads that a key has in a minute. */
async function jobMs(client: Client, key: string): Promise<number> {
  const startMs = performance.now();
  const jobId = await client.submit({
    source: { type: 'url', url: `http://127.0.0.1:${port}/clip.mkv` },
    output: { format: 'mp3' },
  });
  // The stream ends with the job.
  const events = await fetch(`${api}/v1/jobs/${jobId}/events`, { headers: { 'X-API-Key': key } });
  await events.text();
  const tookMs = performance.now() - startMs;
  await client.completed(jobId);
  return tookMs;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

type Statuses = Map<string, number>;

const count = (statuses: Statuses, status: number): unknown =>
  statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1);

interface Attack {
  /** Statuses and how often, by what was tried. */
  readonly answers: Readonly<Record<'uploads' | 'wrongKeys' | 'streams', Statuses>>;
  /** Requests of all kinds. The function that it gives back ends them, and resolves when the last is answered. */
  flood(): () => Promise<unknown>;
}

/** Its jobs drip, and its streams stay open, until `stop`. */
async function attack(key: string): Promise<Attack> {
  const answers = { uploads: new Map(), wrongKeys: new Map(), streams: new Map() };
  const headers = { 'X-API-Key': key };
  const hostile = new Client(api, key);
  const jobs: string[] = [];
  for (let nth = 0; nth < 30; nth += 1) {
    const url = `http://127.0.0.1:${port}/drips-${nth}`;
    jobs.push(await hostile.submit({ source: { type: 'url', url }, output: { format: 'mp3' } }));
  }
  const metadata = `filename ${Buffer.alloc(2900, 'x').toString('base64')}`;
  const upload = (metadata: string) => () =>
    fetch(`${api}/v1/uploads`, {
      method: 'POST',
      headers: {
        ...headers,
        'Tus-Resumable': '1.0.0',
        'Upload-Length': '5000000000',
        'Upload-Metadata': metadata,
      },
    });
  // Each is held open for as long as the service lets it.
  const stream = async (): Promise<Response> => {
    const jobId = jobs[Math.floor(Math.random() * jobs.length)];
    const response = await fetch(`${api}/v1/jobs/${jobId}/events`, { headers, signal: stop.signal });
    if (response.status !== 200) return response;
    held.push(response);
    return new Response(null, { status: 200 });
  };
  const held: Response[] = [];
  const wrong = (nth: number) => () =>
    fetch(`${api}/v1/jobs`, { headers: { 'X-API-Key': `sp_wrong00${nth % 10}_${'x'.repeat(40)}` } });
  const ways: [number, () => Promise<Response>, Statuses][] = [
    [50, upload(metadata), answers.uploads],
    [50, upload(metadata.repeat(4)), answers.uploads],
    [100, wrong(1), answers.wrongKeys],
    [100, wrong(2), answers.wrongKeys],
    ...Array.from({ length: 4 }, (): [number, () => Promise<Response>, Statuses] => [
      10,
      stream,
      answers.streams,
    ]),
  ];
  const flood = (): (() => Promise<unknown>) => {
    const ebb = new AbortController();
    const over = AbortSignal.any([ebb.signal, stop.signal]);
    const again = async (
      everyMs: number,
      ask: () => Promise<Response>,
      statuses: Statuses,
    ): Promise<void> => {
      while (!over.aborted) {
        const response = await ask();
        await response.arrayBuffer();
        count(statuses, response.status);
        await sleep(everyMs);
      }
    };
    const ended = Promise.allSettled(ways.map((way) => again(...way)));
    return () => {
      ebb.abort();
      return ended;
    };
  };
  return { answers, flood };
}

/** What another key does in a turn, and how long its job took. */
async function turn(client: Client, key: string, statuses: Statuses): Promise<number> {
  const asking = async (): Promise<void> => {
    for (let nth = 0; nth < REQUESTS_PER_TURN; nth += 1) {
      const { status } = await client.call('GET', ['/v1/jobs', '/v1/usage'][nth % 2] ?? '');
      count(statuses, status);
      await sleep(20);
    }
  };
  const [tookMs] = await Promise.all([jobMs(client, key), asking()]);
  return tookMs;
}

it('hurts nobody else', { timeout: 240_000 }, async () => {
  const [hostile, other] = [await newKey(), await newKey()];
  const client = new Client(api, other);
  await jobMs(client, other);

  const bytesBefore = await usedBytes();
  const { answers, flood } = await attack(hostile);
  const statuses: Statuses = new Map();
  const flooded: number[] = [];
  const between: number[] = [];
  for (let nth = 0; nth < TURNS; nth += 1) {
    const ebb = flood();
    flooded.push(await turn(client, other, statuses));
    await ebb();
    between.push(await turn(client, other, new Map()));
  }
  const grownBytes = (await usedBytes()) - bytesBefore;
  stop.abort();

  const figures = {
    betweenMs: Math.round(median(between)),
    floodedMs: Math.round(median(flooded)),
    mostMs: Math.round(Math.max(...flooded, ...between)),
    grownMb: Number((grownBytes / 1e6).toFixed(1)),
    answers: Object.fromEntries(
      Object.entries(answers).map(([what, counts]) => [what, Object.fromEntries(counts)]),
    ),
  };
  process.stdout.write(`${JSON.stringify({ row: 'one hostile key', ...figures })}\n`);
  expect(Object.fromEntries(statuses)).toEqual({ 200: TURNS * REQUESTS_PER_TURN });
  promised(figures.mostMs, LONGEST_JOB_MS, JSON.stringify(figures));
  promised(median(flooded), MOST_TIMES_SLOWER * median(between), JSON.stringify(figures));
  expect(grownBytes).toBeLessThan(MOST_REDIS_BYTES);
  // It did try, and its limits held: a stream that has ended makes room for another one, few do.
  expect(answers.uploads.get('429'), JSON.stringify(figures)).toBeGreaterThan(0);
  expect(answers.uploads.get('201'), JSON.stringify(figures)).toBe(OPEN_UPLOADS);
  expect(answers.streams.get('429'), JSON.stringify(figures)).toBeGreaterThan(0);
  expect(answers.streams.get('200'), JSON.stringify(figures)).toBeLessThan(2 * OPEN_STREAMS);
  expect(answers.wrongKeys.get('429'), JSON.stringify(figures)).toBeGreaterThan(0);
});
