/** What streams hold beside AAC, and what their playlists say of it: as ffmpeg decodes the same stream. */
// @module-tag quick-ffmpeg
import { createCipheriv } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { apartDb, decodedSamples, SAME_DB, trackSamples } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { extract, fileOf, placeStream, samplesOf } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

const SECONDS = 12;
const RATE = 48_000;
const TONE = [
  ...['-f', 'lavfi', '-i'],
  `aevalsrc='0.3*sin(880*PI*t)+0.1*sin(t*t*300)|0.2*sin(660*PI*t)':s=${RATE}:d=${SECONDS}`,
];
const HLS = ['-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];
const FMP4 = ['-hls_segment_type', 'fmp4'];
const AAC = ['-c:a', 'aac', '-b:a', '96k'];
const WAV = { format: 'wav', copy: 'never' };

const written: Readonly<Record<string, readonly string[]>> = {
  ts: [...TONE, ...AAC, ...HLS],
  fmp4: [...TONE, ...AAC, ...HLS, ...FMP4],
  mono: [...TONE, '-ac', '1', '-ar', '44100', ...AAC, ...HLS],
  'ac3-ts': [...TONE, '-c:a', 'ac3', ...HLS],
  'eac3-fmp4': [...TONE, '-c:a', 'eac3', ...HLS, ...FMP4],
  'one-file': [...TONE, ...AAC, ...HLS, '-hls_flags', 'single_file'],
};

/** Where each of them was made. */
const places = new Map<string, string>();
const list = (name: string) => `${places.get(name)}/index.m3u8`;

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  for (const [name, options] of Object.entries(written)) {
    places.set(name, await placeStream(folder, name, (place) => [...options, `${place}/index.m3u8`]));
  }
}, 240_000);
afterAll(async () => {
  await around.close();
  await web.close();
});
afterEach(() => {
  expect(around.left()).toEqual([]);
});

const linesOf = async (name: string) => (await readFile(folder.at(`${name}/index.m3u8`), 'utf8')).split('\n');

it.each(['ac3-ts', 'eac3-fmp4'])('%s', async (name) => {
  const result = await extract(around, web.url(`${name}/index.m3u8`), WAV);
  expect(apartDb(await samplesOf(around, result), await trackSamples(list(name)))).toBeLessThan(SAME_DB);
});

it('an encrypted header of fMP4', async () => {
  const key = Buffer.from('sixteen bytes...');
  const iv = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');
  const lines = (await linesOf('fmp4')).map((line) => line.replace('init.mp4', 'init.bin'));
  for (const name of ['init.mp4', ...lines.filter((line) => /^[^#].*m4s$/.test(line))]) {
    const cipher = createCipheriv('aes-128-cbc', key, iv);
    const plain = await readFile(folder.at(`fmp4/${name}`));
    const path = name.replace('init.mp4', 'init.bin');
    web.texts.set(`encrypted/${path}`, Buffer.concat([cipher.update(plain), cipher.final()]));
  }
  web.texts.set('encrypted/key', key);
  const tag = `#EXT-X-KEY:METHOD=AES-128,URI="key",IV=0x${iv.toString('hex')}`;
  const text = lines.join('\n').replace('#EXT-X-MAP', `${tag}\n#EXT-X-MAP`);
  web.texts.set('encrypted/index.m3u8', text);
  const result = await extract(around, web.url('encrypted/index.m3u8'), WAV);
  expect(apartDb(await samplesOf(around, result), await trackSamples(list('fmp4')))).toBeLessThan(SAME_DB);
});

it('byte ranges without an offset go on where the one before ended', async () => {
  const lines = await linesOf('one-file');
  const ranges = lines.filter((line) => line.startsWith('#EXT-X-BYTERANGE'));
  expect(ranges.length).toBeGreaterThan(3);
  const first = lines.indexOf(ranges[0] ?? '');
  const text = lines.map((line, at) =>
    at > first ? line.replace(/^(#EXT-X-BYTERANGE:\d+)@\d+$/, '$1') : line,
  );
  web.texts.set('one-file/follow.m3u8', text.join('\n'));
  web.requests.length = 0;
  const result = await extract(around, web.url('one-file/follow.m3u8'), WAV);
  expect(apartDb(await samplesOf(around, result), await trackSamples(list('one-file')))).toBeLessThan(
    SAME_DB,
  );
});

it('a number of the first segment that no double holds is an IV', async () => {
  const key = Buffer.from('sixteen bytes...');
  const first = 2n ** 60n + 1n;
  const lines = await linesOf('ts');
  for (const [nth, name] of lines.filter((line) => line.endsWith('.ts')).entries()) {
    const iv = Buffer.alloc(16);
    iv.writeBigUInt64BE(first + BigInt(nth), 8);
    const cipher = createCipheriv('aes-128-cbc', key, iv);
    const plain = await readFile(folder.at(`ts/${name}`));
    web.texts.set(`numbered/${name}`, Buffer.concat([cipher.update(plain), cipher.final()]));
  }
  web.texts.set('numbered/key', key);
  const text = lines
    .join('\n')
    .replace(
      /#EXT-X-MEDIA-SEQUENCE:0/,
      `#EXT-X-MEDIA-SEQUENCE:${first}\n#EXT-X-KEY:METHOD=AES-128,URI="key"`,
    );
  web.texts.set('numbered/index.m3u8', text);
  const result = await extract(around, web.url('numbered/index.m3u8'), WAV);
  expect(apartDb(await samplesOf(around, result), await trackSamples(list('ts')))).toBeLessThan(SAME_DB);
});

it('sound with another rate and other channels behind a discontinuity of a transport stream follows what comes before', async () => {
  const at = (name: string, lines: string[]) =>
    lines
      .filter((line) => line.startsWith('#EXTINF') || line.endsWith('.ts'))
      .map((line) => (line.endsWith('.ts') ? `${name}/${line}` : line));
  const parts = [at('ts', await linesOf('ts')), at('mono', await linesOf('mono'))];
  const text = [
    '#EXTM3U',
    '#EXT-X-TARGETDURATION:3',
    parts[0],
    '#EXT-X-DISCONTINUITY',
    parts[1],
    '#EXT-X-ENDLIST',
  ];
  web.texts.set('changing.m3u8', text.flat().join('\n'));
  const result = await extract(around, web.url('changing.m3u8'), WAV);
  const got = await decodedSamples(await fileOf(around, result), RATE);
  const wanted = await Promise.all(['ts', 'mono'].map((name) => decodedSamples(list(name), RATE)));
  const [first, second] = wanted;
  if (first === undefined || second === undefined) throw new Error('no samples');
  expect(got.length).toBe(first.length + second.length);
  expect(largestDifference(got.subarray(0, first.length), first)).toBeLessThan(1e-3);
  // The first frame behind the change has none before it to be mixed with.
  const rest = got.subarray(first.length + 2048);
  expect(largestDifference(rest, second.subarray(2048, 2048 + rest.length))).toBeLessThan(1e-3);
});

describe('a segment that the playlist says is missing', () => {
  /** @param gaps the segments, from 0 */
  async function withGaps(name: string, ...gaps: readonly number[]): Promise<string> {
    let nth = 0;
    const lines = (await linesOf(name)).flatMap((line) => {
      if (!line.startsWith('#EXTINF')) return [line];
      return gaps.includes(nth++) ? ['#EXT-X-GAP', line] : [line];
    });
    const path = `${name}/gap-${gaps.join('-')}.m3u8`;
    web.texts.set(path, lines.join('\n'));
    return path;
  }

  it.each(['ts', 'fmp4'])('in the middle is silence, %s', async (name) => {
    web.requests.length = 0;
    const result = await extract(around, web.url(await withGaps(name, 2, 3)), WAV);
    expect(web.requests.filter((path) => /index[23]\./.test(path))).toEqual([]);
    expect(result.inputFile.duration).toBeCloseTo(SECONDS, 0);
    expect(result.outputFile.timeline.filledSeconds).toBeCloseTo(4, 1);
    const seconds = expect.closeTo(4, 1);
    expect(result.warnings).toEqual([
      { code: 'SEGMENTS_MISSING', message: expect.stringContaining('s of segments as missing'), seconds },
      { code: 'GAPS_FILLED', message: expect.stringContaining('4.0 s'), output: 'audio', seconds },
    ]);
    const got = await decodedSamples(await fileOf(around, result), RATE);
    expect(rms(got.subarray(2 * RATE, 3 * RATE))).toBeGreaterThan(0.05);
    expect(rms(got.subarray(5 * RATE, 7 * RATE))).toBeLessThan(0.001);
    expect(rms(got.subarray(9 * RATE, 10 * RATE))).toBeGreaterThan(0.05);
  });

  it.each(['ts', 'fmp4'])('in front is a late beginning, %s', async (name) => {
    const result = await extract(around, web.url(await withGaps(name, 0)), [
      { ...WAV, name: 'shown' },
      { ...WAV, name: 'closed', timeline: 'audio' },
    ]);
    expect(result.outputFile.timeline.filledSeconds).toBeCloseTo(2, 1);
    expect(result.inputFile.duration).toBeCloseTo(SECONDS, 0);
    const [closed] = result.otherFiles ?? [];
    expect(closed?.timeline?.startOffset).toBeCloseTo(2, 1);
    expect(closed?.duration).toBeCloseTo(SECONDS - 2, 0);
  });
});

function rms(part: Float32Array): number {
  return Math.sqrt(part.reduce((sum, sample) => sum + sample * sample, 0) / part.length);
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  return a.reduce((most, sample, at) => Math.max(most, Math.abs(sample - (b[at] ?? 0))), 0);
}
