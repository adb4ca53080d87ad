/**
 * One key does at once whatever its limits let it try: slow sources, uploads without end, wrong keys from everybody's address, event streams. Another key's
 * jobs and requests are answered as if it were alone, and Redis does not fill. All limits are the defaults.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../src/observe/logger.ts';
import { closeRedis, connectRedis, type Redis } from '../../src/redis/connection.ts';
import { Client } from '../client.ts';
import { ffmpeg } from '../media/oracle.ts';
import { startTestRedis, type TestRedis } from '../redis-server.ts';
import { ServiceHome, soundpost } from '../service.ts';

const ATTACK_SECONDS = 45;
const REQUESTS = 1000;
const JOBS = 20;
/** A job's time while the key is attacked, over its time alone. */
const MOST_TIMES_SLOWER = 3;
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

/** From the submission to the answer that says completed, ms. */
async function jobMs(client: Client): Promise<number> {
  const startMs = performance.now();
  const jobId = await client.submit({
    source: { type: 'url', url: `http://127.0.0.1:${port}/clip.mkv` },
    output: { format: 'mp3' },
  });
  await client.completed(jobId, 60_000);
  return performance.now() - startMs;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** Every so many ms, until the attack is over; counts what was answered. */
async function again(
  everyMs: number,
  ask: () => Promise<Response>,
  answers: Map<string, number>,
): Promise<void> {
  while (!stop.signal.aborted) {
    const response = await ask();
    await response.arrayBuffer();
    answers.set(String(response.status), (answers.get(String(response.status)) ?? 0) + 1);
    await sleep(everyMs);
  }
}

interface Attack {
  /** Statuses and how often, by what was tried. */
  readonly answers: Readonly<Record<'uploads' | 'wrongKeys' | 'streams', Map<string, number>>>;
  readonly ended: Promise<unknown>;
}

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
  const ended = Promise.allSettled([
    again(50, upload(metadata), answers.uploads),
    again(50, upload(metadata.repeat(4)), answers.uploads),
    again(100, wrong(1), answers.wrongKeys),
    again(100, wrong(2), answers.wrongKeys),
    ...Array.from({ length: 4 }, () => again(10, stream, answers.streams)),
  ]);
  return { answers, ended };
}

it('hurts nobody else', { timeout: 240_000 }, async () => {
  const [hostile, other] = [await newKey(), await newKey()];
  const client = new Client(api, other);
  await jobMs(client);
  const alone: number[] = [];
  for (let nth = 0; nth < 9; nth += 1) alone.push(await jobMs(client));

  const bytesBefore = await usedBytes();
  const { answers, ended } = await attack(hostile);
  const untilMs = performance.now() + ATTACK_SECONDS * 1000;
  const statuses = new Map<string, number>();
  const jobs: number[] = [];
  const submitting = (async () => {
    while (jobs.length < JOBS) jobs.push(await jobMs(client));
  })();
  for (let nth = 0; nth < REQUESTS; nth += 1) {
    const { status } = await client.call('GET', ['/v1/jobs', '/v1/usage'][nth % 2] ?? '');
    statuses.set(String(status), (statuses.get(String(status)) ?? 0) + 1);
    await sleep(20);
  }
  await submitting;
  await sleep(Math.max(0, untilMs - performance.now()));
  const grownBytes = (await usedBytes()) - bytesBefore;
  stop.abort();
  await ended;

  const figures = {
    aloneMs: Math.round(median(alone)),
    attackedMs: { median: Math.round(median(jobs)), most: Math.round(Math.max(...jobs)) },
    grownMb: Number((grownBytes / 1e6).toFixed(1)),
    answers: Object.fromEntries(
      Object.entries(answers).map(([what, counts]) => [what, Object.fromEntries(counts)]),
    ),
  };
  process.stdout.write(`${JSON.stringify({ row: 'one hostile key', ...figures })}\n`);
  expect(Object.fromEntries(statuses)).toEqual({ 200: REQUESTS });
  expect(median(jobs), JSON.stringify(figures)).toBeLessThan(MOST_TIMES_SLOWER * median(alone));
  // All but one: a single pause of the machine is nobody's attack.
  expect(jobs.toSorted((a, b) => a - b).at(-2), JSON.stringify(figures)).toBeLessThan(
    MOST_TIMES_SLOWER * Math.max(...alone),
  );
  expect(grownBytes).toBeLessThan(MOST_REDIS_BYTES);
  // It did try.
  expect(answers.uploads.get('429')).toBeGreaterThan(100);
  expect(answers.streams.get('429')).toBeGreaterThan(1000);
  expect(answers.wrongKeys.get('429')).toBeGreaterThan(100);
});
