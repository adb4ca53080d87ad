/** Streams of HLS as ffmpeg makes them: what comes of them is what ffmpeg itself makes of the same stream, sample by sample. */
import { mkdir } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ffmpeg } from '../media/oracle.ts';
import { mediaFolder } from '../media/sources.ts';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extract, samples, samplesOf } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

const PICTURES = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25:d=12'];
const TONE = "aevalsrc='0.3*sin(880*PI*t)+0.1*sin(t*t*300)|0.2*sin(660*PI*t)':s=48000:d=12";
const OTHER_TONE = "aevalsrc='0.3*sin(440*PI*t*(1+t/20))':s=48000:d=12";
const VIDEO = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '50', '-pix_fmt', 'yuv420p'];
const AAC = ['-c:a', 'aac', '-b:a', '96k'];
const HLS = ['-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];

async function make(name: string, ...options: string[]): Promise<void> {
  await mkdir(folder.at(name), { recursive: true });
  await ffmpeg('-v', 'error', ...options);
}

const muxed = [...PICTURES, '-f', 'lavfi', '-i', TONE, ...VIDEO, ...AAC];

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  await make('muxed', ...muxed, ...HLS, folder.at('muxed/index.m3u8'));
  await make(
    'renditions',
    ...[...PICTURES, '-f', 'lavfi', '-i', TONE, '-f', 'lavfi', '-i', OTHER_TONE, ...VIDEO, ...AAC],
    ...['-map', '0:v', '-map', '1:a', '-map', '2:a', ...HLS, '-master_pl_name', 'master.m3u8'],
    ...[
      '-var_stream_map',
      'v:0,agroup:sound a:0,agroup:sound,language:en,default:yes a:1,agroup:sound,language:de',
    ],
    folder.at('renditions/%v.m3u8'),
  );
}, 120_000);
afterAll(async () => {
  await around.close();
  await web.close();
});
afterEach(() => {
  expect(around.left()).toEqual([]);
  web.intercept = () => false;
});

const WAV = { format: 'wav', copy: 'never' };

describe('a stream of one playlist', () => {
  it('of MPEG-TS gives the samples that ffmpeg finds in it', async () => {
    const result = await extract(around, web.url('muxed/index.m3u8'), WAV);
    expect(result.inputFile).toMatchObject({ name: 'index.m3u8', format: 'mpegts' });
    expect(result.inputFile.duration).toBeCloseTo(12, 0);
    expect(await samplesOf(around, result)).toBe(await samples(web.url('muxed/index.m3u8')));
  });
});

describe('a stream with audio renditions', () => {
  it('is fetched without its pictures', async () => {
    web.sentBytes.clear();
    const result = await extract(around, web.url('renditions/master.m3u8'), { format: 'm4a' });
    const sent = [...web.sentBytes].filter(([name]) => name.endsWith('.ts'));
    expect(sent.map(([name]) => name).every((name) => name.startsWith('renditions/1'))).toBe(true);
    expect(sent.length).toBeGreaterThan(4);
    expect(result.outputFile.copied).toBe(true);
  });
});
