/**
 * Servers that send something else than the parts of a stream: a part is asked for three times at
 * most, then the job fails, or its warning tells how much sound is missing. All other sound is in
 * its place.
 */
// @module-tag quick-ffmpeg
import { readFileSync } from 'node:fs';
import { ServiceError } from 'soundpost-contract/errors';
import { rowsOfRun } from 'soundpost-testing/by-run';
import { decodedSamples } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeSurroundings, type Surroundings } from '../worker/worker-fixture.ts';
import { CUT, type Lie, lies } from './lies.ts';
import { extract, fileOf, placeStream } from './stream-run.ts';
import { type StreamServer, serveStreams } from './stream-server.ts';

const folder = mediaFolder();
let web: StreamServer;
let around: Surroundings;

const RATE = 48_000;
const tone = (seconds: number) => [
  ...['-f', 'lavfi', '-i'],
  `aevalsrc='0.3*sin(880*PI*t)+0.1*sin(t*t*300)|0.2*sin(660*PI*t)':s=${RATE}:d=${seconds}`,
];
const HLS = ['-f', 'hls', '-hls_time', '2', '-hls_playlist_type', 'vod'];
const FMP4 = ['-hls_segment_type', 'fmp4'];
const AAC = ['-c:a', 'aac', '-b:a', '96k'];
const SOUND = [...tone(12), ...AAC];
const PICTURES = ['-f', 'lavfi', '-i', 'testsrc2=s=128x72:r=25:d=12'];
const VIDEO = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '50', '-pix_fmt', 'yuv420p'];
const PACKED = ['-f', 'segment', '-segment_time', '2', '-segment_list_type', 'm3u8', '-segment_list'];
const DASH = [...SOUND, '-f', 'dash', '-seg_duration', '2'];

const written: Readonly<Record<string, (place: string) => readonly string[]>> = {
  ts: (at) => [...SOUND, ...HLS, `${at}/index.m3u8`],
  long: (at) => [...tone(24), ...AAC, ...HLS, `${at}/index.m3u8`],
  muxed: (at) => [...PICTURES, ...tone(12), ...VIDEO, ...AAC, ...HLS, `${at}/index.m3u8`],
  fmp4: (at) => [...SOUND, ...HLS, ...FMP4, `${at}/index.m3u8`],
  encrypted: (at) => [...SOUND, ...HLS, '-hls_key_info_file', `${at}/key-info`, `${at}/index.m3u8`],
  'one-file': (at) => [...SOUND, ...HLS, '-hls_flags', 'single_file', `${at}/index.m3u8`],
  ac3: (at) => [...tone(12), '-c:a', 'ac3', ...HLS, `${at}/index.m3u8`],
  'packed-aac': (at) => [...SOUND, ...PACKED, `${at}/index.m3u8`, '-segment_format', 'adts', `${at}/%d.aac`],
  'packed-mp3': (at) => [
    ...[...tone(12), '-c:a', 'libmp3lame', ...PACKED, `${at}/index.m3u8`],
    ...['-segment_format_options', 'write_xing=0:id3v2_version=0', `${at}/%d.mp3`],
  ],
  renditions: (at) => [
    ...[...PICTURES, ...tone(12), ...VIDEO, ...AAC, '-map', '0:v', '-map', '1:a', ...HLS],
    ...['-master_pl_name', 'master.m3u8', '-var_stream_map', 'v:0,agroup:sound a:0,agroup:sound,default:yes'],
    `${at}/%v.m3u8`,
  ],
  timeline: (at) => [...DASH, '-use_timeline', '1', '-use_template', '1', `${at}/index.mpd`],
  number: (at) => [...DASH, '-use_timeline', '0', '-use_template', '1', `${at}/index.mpd`],
  list: (at) => [...DASH, '-use_timeline', '0', '-use_template', '0', `${at}/index.mpd`],
  ranges: (at) => [...DASH, '-single_file', '1', `${at}/index.mpd`],
  webm: (at) => [
    ...[...tone(12), '-c:a', 'libopus', '-f', 'dash', '-seg_duration', '2'],
    ...['-dash_segment_type', 'webm', `${at}/index.mpd`],
  ],
};

const stored = (stream: string, name: string): Buffer => readFileSync(folder.at(`${stream}/${name}`));
const chosen = rowsOfRun(lies(stored), 8);
/** What a job makes of each whole stream. */
const wholes = new Map<string, Promise<Float32Array>>();

beforeAll(async () => {
  web = await serveStreams(folder.path);
  around = await makeSurroundings(web.allow);
  for (const [name, args] of Object.entries(written)) {
    if (chosen.some(({ stream, name: row }) => stream === name || row.includes('container')))
      await placeStream(folder, name, args);
  }
  web.intercept = (request, response) => {
    const [, nth, path = ''] = /^\/lie-(\d+)(\/.*)$/.exec(request.url ?? '') ?? [];
    if (nth === undefined) return false;
    const lie = chosen[Number(nth)];
    if (lie?.about.test(path) !== true) {
      request.url = path;
      return false;
    }
    const bytes = stored(lie.stream, path.slice(lie.stream.length + 2));
    const [range, start, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    if (range === undefined) {
      lie.answer(bytes, response);
      return true;
    }
    const { writeHead } = response;
    const partHead = (_status: number, headers: object) =>
      writeHead.call(response, 206, {
        ...headers,
        'content-range': `bytes ${start}-${last}/${bytes.length}`,
      });
    response.writeHead = partHead as typeof writeHead;
    lie.answer(bytes.subarray(Number(start), Number(last) + 1), response);
    return true;
  };
}, 240_000);
afterAll(async () => {
  await around.close();
  await web.close();
});

const AT_ONCE = 8;
const WAV = { format: 'wav', copy: 'never' };

it(
  'no sound is lost without a word, and none is out of its place',
  async () => {
    const wrong: string[] = [];
    const rows = chosen.entries();
    const work = async (): Promise<void> => {
      for (const [nth, lie] of rows) {
        const faults = await faultsOf(nth, lie);
        if (faults.length > 0) wrong.push(`${lie.name}: ${faults.join('; ')}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    expect(wrong).toEqual([]);
    expect(around.left()).toEqual([]);
  },
  15 * 60_000,
);

async function faultsOf(nth: number, lie: Lie): Promise<string[]> {
  const { stream, playlist, ends } = lie;
  const ending = await extract(around, web.url(`lie-${nth}/${stream}/${playlist}`), WAV).catch(
    (error: unknown) => error,
  );
  const times = timesAsked(nth, lie);
  const often = Math.max(...times) > 3 ? [`asked ${Math.max(...times)} times`] : [];
  if (!(ending instanceof Error))
    return [...often, ...(await faultsOfMade(ending as Awaited<ReturnType<typeof extract>>, lie, times))];
  const details = ending instanceof ServiceError ? `${ending.details}` : String(ending);
  if (!(ends instanceof RegExp) || !ends.test(details)) return [...often, `failed: ${details}`];
  return ends === CUT && times[0] !== 3 ? [...often, `was asked for ${times[0]} times`] : often;
}

/** How often each part that it lies about was asked for; several ranges of a file are not told apart. */
function timesAsked(nth: number, { about, stream }: Lie): number[] {
  if (stream === 'one-file' || stream === 'ranges') return [3];
  const asked = web.requests.filter((path) => path.startsWith(`/lie-${nth}/`) && about.test(path));
  return [...Map.groupBy(asked, (path) => path).values()].map(({ length }) => length);
}

async function faultsOfMade(
  made: Awaited<ReturnType<typeof extract>>,
  lie: Lie,
  times: readonly number[],
): Promise<string[]> {
  if (lie.ends instanceof RegExp) return ['completed'];
  const [least, most] = lie.ends;
  const told = made.warnings.find(({ code }) => code === 'SEGMENTS_MISSING')?.seconds ?? 0;
  const lost = lostSeconds(await decodedSamples(await fileOf(around, made), RATE), await wholeOf(lie));
  // Of a frame at each end of a gap half is mixed with what is missing; MP3's reach further.
  const isTold = Math.abs(lost - told) <= 0.12 * Math.max(1, told / 2);
  return [
    ...(told < least || told > most || !isTold
      ? [`told ${told.toFixed(3)} s, lost ${lost.toFixed(3)} s`]
      : []),
    ...(Math.min(...times) === 3 ? [] : [`asked ${Math.min(...times)} times`]),
  ];
}

function wholeOf({ stream, playlist }: Lie): Promise<Float32Array> {
  const made =
    wholes.get(stream) ??
    extract(around, web.url(`${stream}/${playlist}`), WAV).then(async (whole) => {
      if (whole.warnings.length > 0) throw new Error(`${stream}: ${JSON.stringify(whole.warnings)}`);
      return decodedSamples(await fileOf(around, whole), RATE);
    });
  wholes.set(stream, made);
  return made;
}

const WINDOW = RATE / 100;

/** In windows of 10 ms, those that are not as in the whole. */
function lostSeconds(got: Float32Array, whole: Float32Array): number {
  let lost = 0;
  let shift = 0;
  for (let at = 0; at + WINDOW <= whole.length; at += WINDOW) {
    if (!isAlike(got, whole, at, shift)) {
      // Timestamps of WebM are milliseconds, and a delay of Opus is not counted behind a gap.
      const other = isSilent(got, at) ? undefined : SHIFTS.find((by) => isAlike(got, whole, at, by));
      if (other === undefined) lost += 1;
      else shift = other;
    }
  }
  return lost / 100;
}

const SHIFTS = Array.from({ length: 961 }, (_, nth) => nth - 480);

function isSilent(got: Float32Array, at: number): boolean {
  return got.subarray(at, at + WINDOW).every((sample) => Math.abs(sample) < 0.005);
}

function isAlike(got: Float32Array, whole: Float32Array, at: number, shift: number): boolean {
  let apart = 0;
  for (let sample = at; sample < at + WINDOW; sample += 1)
    apart += ((got[sample + shift] ?? 0) - (whole[sample] ?? 0)) ** 2;
  return Math.sqrt(apart / WINDOW) <= 0.02;
}
