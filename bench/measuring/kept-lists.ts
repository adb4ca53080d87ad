/** What lists cost among many jobs of one key: their records are written as BullMQ keeps them, since running so many would take hours. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ownKey } from 'soundpost-kit/redis/keys';
import { Client } from 'soundpost-testing/client';
import { resultOf } from '../../test/jobs/job-result.ts';
import { openApiBench, typicalJob } from './api.ts';
import { grouped, printRow } from './comparison.ts';

/** One in so many has failed. */
const FAILED_EACH = 100;
const AT_ONCE = 1000;
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;
const QUEUE = '{soundpost}:extract';

const idOf = (nth: number): string => `job_${nth.toString(16).padStart(16, '0')}`;

type Api = Awaited<ReturnType<typeof openApiBench>>;

interface Amount {
  /** Ended jobs of the bench's key. */
  readonly kept: number;
  /** Jobs of another key. */
  readonly unfinished: number;
}

export async function measureLists(amount: Amount, runs: number): Promise<void> {
  const api = await openApiBench();
  const busyKey = await api.newKey();
  const { startedMs, apartMs } = await writeJobs(api, busyKey.split('_')[1] ?? '', amount);
  const url = `http://127.0.0.1:${api.port}`;
  const client = new Client(url, api.key);
  const list =
    (query: string, by = client) =>
    () =>
      by.call('GET', `/v1/jobs?${query}`);
  const oldest = Buffer.from(`${startedMs + 20 * apartMs}.${idOf(20)}`).toString('base64url');
  const rows: readonly (readonly [what: string, work: () => Promise<unknown>])[] = [
    ['the newest page', list('')],
    ['the oldest page', list(`cursor=${oldest}`)],
    ['the newest page of failed ones', list('status=failed')],
    ['the newest page of completed ones', list('status=completed')],
    ['a page of queued ones, of which there are none', list('status=queued')],
    ['a search without a match, one request', list('q=nothing-like-it')],
    ['`jobs list --status failed`, with the start of the command', () => listFailed(url, api.key)],
    [
      `usage with ${grouped(amount.unfinished)} unfinished jobs`,
      () => new Client(url, busyKey).call('GET', '/v1/usage'),
    ],
    [`queued ones among ${grouped(amount.unfinished)}`, list('status=queued', new Client(url, busyKey))],
  ];
  const print = (what: string, ours: number[]): void =>
    printRow({
      ...{ what: `among ${grouped(amount.kept)} jobs: ${what}`, against: null, unit: 'ms', ours },
      ...{ theirs: [], reach: null },
    });
  print('the first list by state after an upgrade', [await ms(list('status=failed'))]);
  for (const [what, work] of rows) {
    await work();
    const ours: number[] = [];
    for (let run = 0; run < Math.max(runs, 3); run += 1) ours.push(await ms(work));
    print(what, ours);
  }
  await api.close();
}

/** Writes the jobs of a week; those of the other key are queued. */
async function writeJobs(api: Api, busy: string, { kept, unfinished }: Amount) {
  const startedMs = Date.now() - WEEK_MS;
  const apartMs = Math.floor(WEEK_MS / (kept + unfinished));
  for (let from = 0; from < kept + unfinished; from += AT_ONCE) {
    const writing = api.redis.pipeline();
    for (let nth = from; nth < Math.min(from + AT_ONCE, kept + unfinished); nth += 1) {
      const at = startedMs + nth * apartMs;
      const job = nth < kept ? endedJob(nth, api.tenant, at) : { tenant: busy, state: 'queued', end: {} };
      const { tenant, state, end } = job;
      const jobId = idOf(nth);
      const data = { version: 1, tenant, ...typicalJob, batchId: null, retryOf: null };
      writing.hset(`${QUEUE}:${jobId}`, {
        ...{ name: 'extract', timestamp: at, opts: '{}', spConfirmed: '1', spTenant: tenant },
        ...{ data: JSON.stringify({ options: { priority: 'normal' }, ...data }), spNames: '["talk.mp4",""]' },
        ...end,
      });
      writing.zadd(ownKey('jobs', tenant), at, jobId);
      if (state === 'queued') writing.sadd(ownKey('unfinished', tenant), jobId);
      else writing.zadd(`${QUEUE}:${state}`, at, jobId);
    }
    await writing.exec();
  }
  return { startedMs, apartMs };
}

function endedJob(nth: number, tenant: string, at: number) {
  const times = { processedOn: at, finishedOn: at };
  if (nth % FAILED_EACH === 0) return { tenant, state: 'failed', end: times };
  const returnvalue = JSON.stringify(resultOf(idOf(nth)));
  return { tenant, state: 'completed', end: { ...times, returnvalue } };
}

async function ms(work: () => Promise<unknown>): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

function listFailed(url: string, key: string): Promise<unknown> {
  return promisify(execFile)(
    process.execPath,
    ['src/main.ts', 'jobs', 'list', '--status', 'failed', '--limit', '1000', '--server', url],
    { env: { ...process.env, SOUNDPOST_API_KEY: key }, maxBuffer: 2 ** 26 },
  );
}
