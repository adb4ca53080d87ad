/** How long a newcomer's job waits for its begin beside one key that holds the whole worker, against the same service when it is idle. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ffmpeg } from 'soundpost-testing/oracle';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useClips, useService } from './api-fixture.ts';

const MOST_SECONDS = 0.5;
const NEWCOMERS = 5;

const clip = useClips('tone.mp4');
// As on a machine of two cores: six places, two encoders.
const service = useService({
  environment: {
    WORKER_CONCURRENCY: '2',
    UNFINISHED_PER_KEY: '2000',
    RATE_SUBMIT_PER_MINUTE: '10000',
    RATE_READ_PER_MINUTE: '100000',
  },
});

const job = (url: string, format = 'aac'): object => ({ source: { type: 'url', url }, output: { format } });

let short = '';
let idleSeconds = 0;
const stop = new AbortController();
beforeAll(async () => {
  short = await service().outside.file('tone.mp4', clip('tone.mp4'));
  idleSeconds = await longestWait();
});
afterAll(() => stop.abort());

/** Seconds from the acceptance of a newcomer's job to its begin: the longest of some, each to its end. */
async function longestWait(): Promise<number> {
  const waits: number[] = [];
  for (let nth = 0; nth < NEWCOMERS; nth++) {
    const key = await service().newKey();
    const { status, createdAt, startedAt } = await service().ended(
      await service().submit(job(short), { key }),
      { key },
    );
    expect(status).toBe('completed');
    waits.push((Date.parse(startedAt) - Date.parse(createdAt)) / 1000);
  }
  return Math.max(...waits);
}

async function expectShortWait(): Promise<void> {
  const seconds = await longestWait();
  expect(seconds, `${seconds} s; idle ${idleSeconds} s`).toBeLessThanOrEqual(MOST_SECONDS + idleSeconds);
}

it('thirty sources that drip', { timeout: 120_000 }, async () => {
  const key = await service().newKey();
  let dripping = 0;
  const url = service().outside.on('/drip', async (_request: IncomingMessage, response: ServerResponse) => {
    dripping += 1;
    response.writeHead(200, { 'content-length': 60_000_000 }).on('error', () => undefined);
    // Just above what is broken off as too slow.
    while (!stop.signal.aborted && !response.destroyed) {
      response.write(Buffer.alloc(1800));
      await sleep(200);
    }
    response.destroy();
  });
  const jobs: string[] = [];
  for (let nth = 0; nth < 30; nth++) jobs.push(await service().submit(job(url), { key }));
  await until('all places are held', () => dripping >= 6);
  await expectShortWait();
  // One key alone has the places, and no more.
  expect(dripping).toBe(6);
  for (const jobId of jobs) await service().call('DELETE', `/v1/jobs/${jobId}`, { key });
});

it('eight encodes of an hour', { timeout: 240_000 }, async () => {
  const key = await service().newKey();
  const { stdout: hour } = await ffmpeg(
    ...['-v', 'error', '-f', 'lavfi', '-i', 'anullsrc=r=44100:cl=stereo', '-t', '3600'],
    ...['-c:a', 'flac', '-f', 'flac', '-'],
  );
  const url = service().outside.on('/hour.flac', (_request: IncomingMessage, response: ServerResponse) =>
    response.writeHead(200, { 'content-length': hour.length }).end(hour),
  );
  const jobs: string[] = [];
  for (let nth = 0; nth < 8; nth++) jobs.push(await service().submit(job(url, 'mp3'), { key }));
  await until('both encoders are held', async () => {
    const states = await Promise.all(jobs.map((jobId) => service().job(jobId, { key })));
    return states.filter(({ currentStep }) => currentStep === 'extracting_audio').length === 2;
  });
  await expectShortWait();
  for (const jobId of jobs) await service().call('DELETE', `/v1/jobs/${jobId}`, { key });
});

it('a burst of a thousand jobs', { timeout: 240_000 }, async () => {
  const key = await service().newKey();
  const json = { jobs: Array.from({ length: 10 }, () => job(short)) };
  for (let nth = 0; nth < 100; nth++) {
    expect((await service().call('POST', '/v1/batch', { key, json })).status).toBe(202);
  }
  await expectShortWait();
  const { body } = await service().call('GET', '/v1/usage', { key });
  expect(body.data.unfinishedJobs.used).toBeGreaterThan(100);
});
