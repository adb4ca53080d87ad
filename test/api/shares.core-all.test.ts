/** Places that one key holds with slow sources, at default limits: what others get of them, and what becomes of the downloads that make room. */

import { readdir, readFile, stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { currentRun } from 'soundpost-testing/by-run';
import { ffmpeg } from 'soundpost-testing/oracle';
import { until } from 'soundpost-testing/until';
import { afterEach, expect, it } from 'vitest';
import { useClips, useService } from './api-fixture.ts';

const clip = useClips('tone.mp4');
// As on a machine of two cores.
const service = useService({ environment: { WORKER_CONCURRENCY: '2' } });

const job = (url: string): object => ({ source: { type: 'url', url }, output: { format: 'aac' } });

interface SlowSource {
  readonly url: string;
  /** Range headers, of each request one. */
  readonly ranges: (string | undefined)[];
}

const gates: PromiseWithResolvers<void>[] = [];
afterEach(() => {
  for (const gate of gates) gate.resolve();
});

/** How many files of this size the jobs have. */
async function filesOf(sizeBytes: number): Promise<number> {
  const folder = join(service().dataDir, 'workspaces');
  const entries = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(
    entries.map((entry) =>
      stat(join(folder, entry)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.filter((size) => size === sizeBytes).length;
}

/** Sends half of a file, and the rest when it is let go; continues it where it is asked to. */
async function slowSource(name: string, gate: PromiseWithResolvers<void>): Promise<SlowSource> {
  gates.push(gate);
  const bytes = await readFile(clip('tone.mp4'));
  const half = bytes.length >> 1;
  const ranges: (string | undefined)[] = [];
  const url = service().outside.on(
    `/${name}`,
    async ({ headers }: IncomingMessage, response: ServerResponse) => {
      ranges.push(headers.range);
      const start =
        headers['if-range'] === '"same"' ? Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1]) : 0;
      response.writeHead(start === 0 ? 200 : 206, {
        'content-length': bytes.length - start,
        etag: '"same"',
        ...(start > 0 && { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` }),
      });
      if (start < half) response.write(bytes.subarray(start, half));
      await gate.promise;
      response.end(bytes.subarray(Math.max(start, half)));
    },
  );
  return { url, ranges };
}

it.runIf(currentRun === 'core')(
  'downloads that make room for another key are continued where they were, and their jobs complete',
  async () => {
    const [slow, other] = [await service().newKey(), await service().newKey()];
    const gate = Promise.withResolvers<void>();
    const sources = await Promise.all(
      Array.from({ length: 8 }, (_, nth) => slowSource(`slow-${nth}.mp4`, gate)),
    );
    const jobs = [];
    for (const { url } of sources) jobs.push(await service().submit(job(url), { key: slow }));
    const begun = () => sources.filter(({ ranges }) => ranges.length > 0).length;
    await until('all places are held', () => begun() === 6);
    const half = (await readFile(clip('tone.mp4'))).length >> 1;
    await until('half of each is there', async () => (await filesOf(half)) === 6);
    const others = Promise.withResolvers<void>();
    const two = await Promise.all(['one', 'two'].map((name) => slowSource(`other-${name}.mp4`, others)));
    const theirs = [];
    for (const { url } of two) theirs.push(await service().submit(job(url), { key: other }));
    await until('both are fetched', () => two.every(({ ranges }) => ranges.length > 0));
    expect(begun()).toBe(6);
    others.resolve();
    for (const jobId of theirs)
      expect((await service().ended(jobId, { key: other })).status).toBe('completed');

    await until(
      'what was put back is fetched again',
      () => sources.filter(({ ranges }) => ranges.length > 1).length >= 2,
    );
    gate.resolve();
    for (const jobId of jobs) expect((await service().ended(jobId, { key: slow })).status).toBe('completed');
    // Two are enough; of a machine that is slow to begin the others more may be put back.
    const again = sources.flatMap(({ ranges }) => ranges.slice(1));
    expect(new Set(again)).toEqual(new Set([`bytes=${half}-`]));
  },
);

/** A stream of two segments, of which the second waits. */
async function slowStream(
  name: string,
  segment: Buffer,
  gate: PromiseWithResolvers<void>,
): Promise<{ url: string; requests: string[] }> {
  gates.push(gate);
  const requests: string[] = [];
  const at = (path: string, body: string | Buffer, after?: Promise<void>) =>
    service().outside.on(`/${name}/${path}`, async (_request: IncomingMessage, response: ServerResponse) => {
      requests.push(path);
      await after;
      response.writeHead(200, { 'content-length': body.length }).end(body);
    });
  at('0.ts', segment);
  at('1.ts', segment, gate.promise);
  const lines = [
    '#EXTM3U',
    '#EXT-X-TARGETDURATION:9',
    '#EXTINF:3,',
    '0.ts',
    '#EXT-X-DISCONTINUITY',
    '#EXTINF:3,',
  ];
  return { url: at('index.m3u8', [...lines, '1.ts', '#EXT-X-ENDLIST'].join('\n')), requests };
}

it.runIf(currentRun === 'all')(
  'streams that make room for another key are continued behind the segments that have come',
  async () => {
    const [slow, other] = [await service().newKey(), await service().newKey()];
    const { stdout: segment } = await ffmpeg(
      '-v',
      'error',
      '-i',
      clip('tone.mp4'),
      '-vn',
      '-c',
      'copy',
      '-f',
      'mpegts',
      '-',
    );
    const gate = Promise.withResolvers<void>();
    const streams = await Promise.all(
      Array.from({ length: 6 }, (_, nth) => slowStream(`stream-${nth}`, segment, gate)),
    );
    const jobs: string[] = [];
    for (const { url } of streams) jobs.push(await service().submit(job(url), { key: slow }));
    await until('each has its first segment', async () => {
      const states = await Promise.all(jobs.map((jobId) => service().job(jobId, { key: slow })));
      return (
        states.every(({ progress }) => progress > 0) &&
        streams.every(({ requests }) => requests.includes('1.ts'))
      );
    });
    const theirs = await slowSource('theirs.mp4', Promise.withResolvers<void>());
    const second = await slowSource('second.mp4', Promise.withResolvers<void>());
    for (const { url } of [theirs, second]) await service().submit(job(url), { key: other });
    await until('both are fetched', () => [theirs, second].every(({ ranges }) => ranges.length > 0));
    for (const open of gates) open.resolve();
    for (const jobId of jobs) {
      const { status, outputFile } = await service().ended(jobId, { key: slow });
      expect(status).toBe('completed');
      expect(outputFile?.duration).toBeGreaterThan(0);
    }
    const again = streams.map(({ requests }) => requests.filter((path) => path !== 'index.m3u8'));
    const putBack = again.filter((paths) => paths.length > 2);
    expect(putBack.length).toBeGreaterThan(0);
    for (const [first, ...others] of putBack) {
      expect(first).toBe('0.ts');
      expect(new Set(others)).toEqual(new Set(['1.ts']));
    }
  },
);
