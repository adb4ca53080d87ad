/** A stream of 5,000 segments. */
import { mkdir, readdir } from 'node:fs/promises';
import { apartDb, ffmpeg, SAME_DB, trackSamples } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extract, samplesOf } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const SEGMENTS = 5_000;
/** A packet of AAC at 16 kHz is 64 ms: segments of 0.2 s have four. */
const SECONDS = SEGMENTS * 0.26;
const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  await mkdir(folder.at('many'));
  const tone = ['-f', 'lavfi', '-i', `aevalsrc='0.3*sin(880*PI*t)+0.1*sin(t*t)':s=16000:d=${SECONDS}`];
  const segments = ['-f', 'segment', '-segment_time', '0.2', '-segment_format', 'mpegts'];
  const index = ['-segment_list', folder.at('many/index.m3u8'), '-segment_list_size', '0'];
  await ffmpeg(
    '-v',
    'error',
    ...tone,
    '-c:a',
    'aac',
    '-b:a',
    '32k',
    ...segments,
    ...index,
    folder.at('many/%d.ts'),
  );
}, 120_000);
afterAll(async () => {
  await around.close();
  await web.close();
});

it('is that many requests over few connections, and every sample', async () => {
  const files = (await readdir(folder.at('many'))).filter((name) => name.endsWith('.ts'));
  expect(files.length).toBeGreaterThanOrEqual(SEGMENTS);
  const result = await extract(around, web.url('many/index.m3u8'), { format: 'wav', copy: 'never' });
  expect(web.requests).toHaveLength(files.length + 1);
  expect(new Set(web.requests).size).toBe(files.length + 1);
  expect(web.peakConnections).toBeLessThanOrEqual(16);
  expect(
    apartDb(await samplesOf(around, result), await trackSamples(web.url('many/index.m3u8'))),
  ).toBeLessThan(SAME_DB);
  expect(around.left()).toEqual([]);
}, 300_000);
