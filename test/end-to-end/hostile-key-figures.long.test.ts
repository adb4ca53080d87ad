/**
 * Each attack of one key, under the limits of production, beside the same machine idle a moment
 * before: how another key's requests and jobs go, how long the event loops of API and worker stand,
 * and what the processes hold. Needs an otherwise idle machine (decisions A6).
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'soundpost-testing/client';
import { fetch } from 'soundpost-testing/http';
import { ffmpeg } from 'soundpost-testing/oracle';
import { descendants } from 'soundpost-testing/processes';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { type RunningProcess, ServiceHome, soundpost } from 'soundpost-testing/service';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { percentile, report } from '../faults/runs.ts';
import { startTranscriber, type TranscriberStub } from '../followups/transcripts/transcriber-stub.ts';
import { type Attack, attacksOf, type EventFlood, eventFloods } from './hostile-attacks.ts';

/** Of another key's GET, above idle, p95. */
const MOST_GET_MS = 50;
/** Of another key's job of 10 s, over its time when idle. */
const MOST_TIMES_SLOWER = 3;
/** Of an event loop, of its own processor time. */
const LONGEST_STAND_MS = 100;
const MOST_MIB = 300;

/** Beside them 100 reads are made, enough for a 95th percentile. */
const JOBS = 20;
const READ_EVERY_MS = 50;
/** Connections over which status events are posted, each as fast as it is answered. */
const SENDERS = 8;
const EVENTS_TOKEN = 'the-token-of-another-gateway';
const READS = ['/v1/jobs', '/v1/jobs?q=clip', '/v1/usage', '/health/live'];

let redis: TestRedis;
let home: ServiceHome;
let stranger: Server;
let transcriber: TranscriberStub;
let origin = '';
let api = '';
const parts: Partial<Record<'api' | 'worker', RunningProcess>> = {};
const stands = mkdtempSync(join(tmpdir(), 'soundpost-stands-'));
const bodies = new Map<string, Buffer>();

beforeAll(async () => {
  redis = await startTestRedis();
  transcriber = await startTranscriber();
  // As many segments as are read, and an error that never ends.
  const segments = Array.from({ length: 3_000 }, (_, nth) => ({
    start: nth / 4,
    end: nth / 4,
    text: 'Good.',
  }));
  const [words, noise] = [JSON.stringify({ segments }), JSON.stringify({ text: 'a '.repeat(2_000_000) })];
  transcriber.answer = (response, _, nth) => response.end(nth % 2 === 0 ? words : noise);
  stranger = createServer(({ url = '' }, response) => {
    const body = bodies.get(url);
    if (body === undefined) response.writeHead(404).end();
    else response.writeHead(200, { 'content-length': body.length }).end(body);
  }).listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  const { port } = stranger.address() as AddressInfo;
  origin = `http://127.0.0.1:${port}`;
  const clip = ['-f', 'lavfi', '-i', 'sine=440:duration=10', '-c:a', 'aac', '-f', 'matroska', '-'];
  bodies.set('/clip.mkv', (await ffmpeg(...clip)).stdout);
  home = await ServiceHome.make({
    REDIS_URL: redis.url,
    SECRET_KEY: 'a secret of the tests, which is of 32 bytes or more',
    OUTBOUND_ALLOW: `127.0.0.1:${port}`,
    RATE_SUBMIT_PER_MINUTE: '60',
    RATE_READ_PER_MINUTE: '3600',
    TRANSCRIBER_URL: transcriber.url,
    GATEWAY_EVENTS_TOKEN: EVENTS_TOKEN,
    // A flood of events has an address of its own.
    TRUST_PROXY: '1',
    STANDS: stands,
    NODE_OPTIONS: `--import=${join(import.meta.dirname, 'stand-recorder.ts')}`,
  });
  parts.api = home.start('api');
  api = await parts.api.says(/^API\s+(http\S+)/m);
  parts.worker = home.start('worker');
  await parts.worker.says(/^Worker/m);
}, 120_000);
afterAll(async () => {
  await home.remove();
  stranger.closeAllConnections();
  stranger.close();
  await transcriber.close();
  await redis.close();
  rmSync(stands, { recursive: true });
});

const newKey = (): Promise<string> =>
  home.run([...soundpost, 'keys', 'create', '--name', 'one']).says(/(sp_\w+)/);

/** From the submission to the event that says completed, ms. */
async function jobMs(client: Client, key: string): Promise<number> {
  const startMs = performance.now();
  const source = { type: 'url', url: `${origin}/clip.mkv` };
  const jobId = await client.submit({ source, output: { format: 'mp3' } });
  const events = await fetch(`${api}/v1/jobs/${jobId}/events`, { headers: { 'X-API-Key': key } });
  await events.text();
  const tookMs = performance.now() - startMs;
  await client.completed(jobId);
  return tookMs;
}

interface Served {
  readonly getMs: number;
  readonly jobMs: number;
  /** Other than 200. */
  readonly refusals: readonly string[];
}

/** What another key gets: reads all the time, and one job after the other. */
async function serve(client: Client, key: string, jobs: number): Promise<Served> {
  const getMs: number[] = [];
  const refusals: string[] = [];
  let isOver = false;
  const reading = (async () => {
    for (let nth = 0; !isOver; nth += 1) {
      const path = READS[nth % READS.length] ?? '';
      const startMs = performance.now();
      const { status } = await client.call('GET', path);
      getMs.push(performance.now() - startMs);
      if (status !== 200) refusals.push(`${path}: ${status}`);
      await sleep(READ_EVERY_MS);
    }
  })();
  const jobsMs: number[] = [];
  for (let nth = 0; nth < jobs; nth += 1) jobsMs.push(await jobMs(client, key));
  isOver = true;
  await reading;
  return { getMs: percentile(getMs, 0.95), jobMs: percentile(jobsMs, 0.5), refusals };
}

/** Submits until it is told to stop, as often as it may. @returns how often by status */
function attackWith(attack: Attack, key: string) {
  const client = new Client(api, key);
  const statuses: Record<string, number> = {};
  const jobs: string[] = [];
  let isOver = false;
  const ended = (async () => {
    while (!isOver) {
      const { status, body } = await client.call('POST', '/v1/extract', attack.submission(origin));
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 202) jobs.push(body.data.jobId);
      if (status === 429) await sleep(200);
    }
  })();
  return async () => {
    isOver = true;
    await ended;
    for (const jobId of jobs) await client.call('DELETE', `/v1/jobs/${jobId}`);
    await until('nothing of it is left', async () => {
      const { body } = await client.call('GET', '/v1/usage');
      return body.data.unfinishedJobs.used === 0;
    });
    return statuses;
  };
}

/** Posts until it is told to stop. @returns how often by status */
function floodWith({ headers, body }: EventFlood) {
  const statuses: Record<string, number> = {};
  let isOver = false;
  const post = async (): Promise<void> => {
    while (!isOver) {
      const { status } = await fetch(`${api}/hooks/gateway`, { method: 'POST', headers, body }).catch(() => ({
        // It is refused before its body has been sent.
        status: 'closed',
      }));
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  const ended = Promise.all(Array.from({ length: SENDERS }, post));
  return async () => {
    isOver = true;
    await ended;
    return statuses;
  };
}

/** The most that each process holds, MiB, from now on; of tools and the reader the largest. */
function memory(): () => Readonly<Record<string, number>> {
  const most: Record<string, number> = {};
  const note = (name: string, pid: number): void => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      const mib = Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024;
      most[name] = Math.round(Math.max(most[name] ?? 0, mib));
    } catch {
      // It has ended.
    }
  };
  const look = (): void => {
    for (const [name, { pid }] of Object.entries(parts)) {
      note(name, pid);
      for (const child of descendants(pid)) note(`under ${name}`, child);
    }
  };
  // From here the peaks count (proc(5)).
  for (const { pid } of Object.values(parts)) writeFileSync(`/proc/${pid}/clear_refs`, '5');
  const timer = setInterval(look, 200);
  return () => {
    clearInterval(timer);
    look();
    return most;
  };
}

/** The longest since then, ms. */
function longestStandMs(name: string, sinceMs: number): number {
  const lines = readFileSync(join(stands, name), 'utf8').trim().split('\n');
  const since = lines.map((line) => line.split(' ').map(Number)).filter(([at = 0]) => at >= sinceMs);
  return Math.round(Math.max(0, ...since.map(([, ms = 0]) => ms)));
}

/** That a job was lost and taken again, or an attempt was given up for its lock. */
const lostLeases = (): number =>
  (parts.worker?.output() ?? '').split('\n').filter((line) => /stalled|lock|lost/i.test(line)).length;

/** How another key is served before and during an attack. @param begin starts it, and gives what stops it */
async function measured(name: string, begin: () => ReturnType<typeof attackWith>): Promise<void> {
  const other = await newKey();
  const client = new Client(api, other);
  await jobMs(client, other);
  const idle = await serve(client, other, JOBS);

  const sinceMs = Date.now();
  const lostBefore = lostLeases();
  const held = memory();
  const stop = begin();
  await sleep(1_000);
  const attacked = await serve(client, other, JOBS);
  const mib = held();
  const statuses = await stop();

  const standMs = { api: longestStandMs('api', sinceMs), worker: longestStandMs('worker', sinceMs) };
  const figures = {
    getMs: [Math.round(idle.getMs), Math.round(attacked.getMs)],
    jobMs: [Math.round(idle.jobMs), Math.round(attacked.jobMs)],
    ...{ standMs, mib, statuses },
  };
  report(`attack: ${name}`, figures);
  const all = JSON.stringify(figures);
  expect.soft(attacked.refusals, all).toEqual([]);
  expect.soft(statuses[503] ?? 0, all).toBe(0);
  expect.soft(attacked.getMs, all).toBeLessThanOrEqual(idle.getMs + MOST_GET_MS);
  expect.soft(attacked.jobMs, all).toBeLessThanOrEqual(MOST_TIMES_SLOWER * idle.jobMs);
  expect.soft(Math.max(standMs.api, standMs.worker), all).toBeLessThanOrEqual(LONGEST_STAND_MS);
  expect.soft(Math.max(...Object.values(mib)), all).toBeLessThanOrEqual(MOST_MIB);
  expect.soft(lostLeases() - lostBefore, all).toBe(0);
}

it.each(Object.entries(attacksOf(1)))('%s', { timeout: 300_000 }, async (name, make) => {
  const attack = await make();
  for (const [path, body] of attack.bodies) bodies.set(path, body);
  const hostile = await newKey();
  await measured(name, () => attackWith(attack, hostile));
  for (const path of attack.bodies.keys()) bodies.delete(path);
});

it.each(Object.entries(eventFloods(EVENTS_TOKEN)))('%s', { timeout: 300_000 }, async (name, flood) => {
  await measured(name, () => floodWith(flood));
});
