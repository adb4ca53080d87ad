// @module-tag quick-ffmpeg
/** Choosing sound: a mix of all tracks, one channel, no long pauses, and gaps that are a delay (decisions A2 and A2a). */
import { readFile, writeFile } from 'node:fs/promises';
import { extract, extractSeveral, noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSamples, decodedSeconds, inspect, measureLoudness } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { probe } from '../src/probe.ts';
import { chooseTrack, offeredTracks } from '../src/track-choice.ts';

const folder = mediaFolder();
const RATE = 8000;

const tone = (hz: number, seconds: number, filter = 'anull') => [
  ...['-f', 'lavfi', '-i', `sine=frequency=${hz}:sample_rate=48000:duration=${seconds},volume=8dB,${filter}`],
];

/** How strong a tone is in a second, dB below full scale. */
function level(samples: Float32Array, hz: number, second: number): number {
  let [re, im] = [0, 0];
  for (let at = 0; at < RATE; at += 1) {
    const sample = samples[second * RATE + at] ?? 0;
    re += sample * Math.cos((2 * Math.PI * hz * at) / RATE);
    im += sample * Math.sin((2 * Math.PI * hz * at) / RATE);
  }
  return 20 * Math.log10((2 * Math.hypot(re, im)) / RATE + 1e-6);
}

/** The level of ffmpeg's sine, an eighth of full scale, after `volume=8dB`. */
const TONE_DB = 20 * Math.log10(1 / 8) + 8;

/** Two tracks: a stereo tone of 5 s, and a mono one of 4 s that begins at second 3. */
function twoTracks(): Promise<string> {
  const second = ['-itsoffset', '3', ...tone(1000, 4)];
  const codecs = ['-map', '0:a', '-map', '1:a', '-c:a', 'flac', '-ac:a:0', '2'];
  return cachedMedia('two-tracks.mkv', [...tone(400, 5, 'pan=stereo|c0=c0|c1=c0'), ...second, ...codecs]);
}

it('a mix has all tracks, each on the clock and at its level', async () => {
  const path = await twoTracks();
  const { output, sourceSeconds } = await extract(path, folder.at('mix.flac'), {
    format: 'flac',
    track: 'mix',
  });
  expect(output).toMatchObject({ channels: 2, sampleRate: 48_000 });
  expect(sourceSeconds).toBeCloseTo(7, 2);
  expect(await decodedSeconds(output.path)).toBeCloseTo(7, 2);
  const side = { format: 'flac', track: 'mix', channel: 'right' };
  const right = await extract(path, folder.at('right.flac'), side);
  const samples = await decodedSamples(right.output.path, RATE);
  for (const [second, first, other] of [
    [1, true, false],
    [4, true, true],
    [5.5, false, true],
  ] as const) {
    expect(Math.abs(level(samples, 400, second) - TONE_DB) < 0.5, `400 Hz at ${second}`).toBe(first);
    expect(Math.abs(level(samples, 1000, second) - TONE_DB) < 0.5, `1000 Hz at ${second}`).toBe(other);
  }
});

it('a mix of loud tracks stays below −1 dBTP, beside an output of one track', async () => {
  const loud = (hz: number) => tone(hz, 4, 'volume=9dB');
  const path = await cachedMedia('loud-tracks.mkv', [
    ...[...loud(400), ...loud(1000), ...loud(1500), '-map', '0:a', '-map', '1:a', '-map', '2:a'],
    ...['-c:a', 'flac'],
  ]);
  const wanted = [
    { path: folder.at('one.mp3'), request: { format: 'mp3', track: 1 } },
    { path: folder.at('loud.wav'), request: { format: 'wav', track: 'mix', start: 1, end: 3 } },
  ];
  const { files } = await extractSeveral(path, wanted);
  const [one, mix] = files;
  expect(one?.durationSeconds).toBeCloseTo(4, 2);
  expect(mix?.durationSeconds).toBe(2);
  expect((await measureLoudness(folder.at('loud.wav'))).truePeakDbtp).toBeLessThanOrEqual(-1);
  const samples = await decodedSamples(folder.at('one.mp3'), RATE);
  expect(level(samples, 400, 2)).toBeLessThan(-60);
});

it('a part of a mix is mixed no further than its end', async () => {
  const long = ['-stream_loop', '9', '-i', await twoTracks(), '-map', '0:a', '-c', 'copy'];
  const request = { format: 'mp3', track: 'mix', start: 0, end: 1 };
  // All of it would take 27 MB.
  const limits = { maxOutputBytes: 2_000_000 };
  const { output } = await extract(
    await cachedMedia('long.mkv', long),
    folder.at('part.mp3'),
    request,
    limits,
  );
  expect(output.durationSeconds).toBeCloseTo(1, 1);
});

it('one channel is taken as mono', async () => {
  const sides = ['-f', 'lavfi', '-i', "aevalsrc='0.3*sin(2*PI*400*t)|0.3*sin(2*PI*1000*t)':s=48000:d=3"];
  const path = await cachedMedia('sides.wav', sides);
  for (const [channel, hz, other] of [
    ['left', 400, 1000],
    [1, 1000, 400],
  ] as const) {
    const { output } = await extract(path, folder.at('side.flac'), { format: 'flac', channel });
    expect(output.channels).toBe(1);
    const samples = await decodedSamples(output.path, RATE);
    expect(level(samples, hz, 1)).toBeCloseTo(20 * Math.log10(0.3), 0);
    expect(level(samples, other, 1)).toBeLessThan(-60);
  }
  await expect(extract(path, folder.at('side.flac'), { format: 'flac', channel: 2 })).rejects.toThrow(
    expect.objectContaining({ details: 'no channel 2; audio track 0 has channels 0 to 1' }),
  );
});

/** A second of a tone, a pause of 3 s, a tone, a pause of 0.8 s, a tone: 24 bits, two channels. */
function pauses(): Promise<string> {
  const silences = 'between(t\\,1\\,4)+between(t\\,5\\,5.8)';
  const filter = `volume=0:enable='${silences}',pan=stereo|c0=c0|c1=0.5*c0`;
  return cachedMedia('pauses.wav', [...tone(400, 6.8, filter), '-c:a', 'pcm_s24le']);
}

it.each([
  [{ format: 'flac' }, 0.001],
  [{ format: 'm4a', normalize: true }, 0.05],
  [{ format: 'voice' }, 0.05],
] as const)('pauses above 1 s become 0.5 s: %o', async (request, off) => {
  const path = await pauses();
  const asked = { ...request, timeline: 'audio', trimSilence: true };
  const { output, sourceSeconds } = await extract(path, folder.at(`short.${request.format}`), asked);
  expect(Math.abs(output.durationSeconds - 4.3)).toBeLessThan(0.03);
  expect(Math.abs((await decodedSeconds(output.path)) - output.durationSeconds)).toBeLessThan(off);
  expect(sourceSeconds).toBeCloseTo(6.8, 3);
  const samples = await decodedSamples(output.path, RATE);
  // The second tone begins at 1.5 s.
  const heard = [0.25, 1.75, 3.5].map((second) =>
    level(samples.subarray(second * RATE, (second + 0.5) * RATE), 400, 0),
  );
  for (const db of heard) expect(db).toBeGreaterThan(-30);
  const { audio } = await inspect(output.path);
  if (request.format === 'flac') expect(audio).toMatchObject({ bits_per_raw_sample: '24', channels: 2 });
});

/** Streams one after the other in one file, each with a tone of its own. */
async function chained(): Promise<string> {
  const links = await Promise.all(
    [400, 1000].map(async (hz) =>
      readFile(await cachedMedia('link.opus', [...tone(hz, 6), '-c:a', 'libopus'])),
    ),
  );
  const path = folder.at('chained.opus');
  await writeFile(path, Buffer.concat(links));
  return path;
}

it('a chained Ogg has no silence between its streams', async () => {
  const path = await chained();
  const { output, sourceSeconds } = await extract(path, folder.at('chained.flac'), { format: 'flac' });
  expect(output.durationSeconds).toBeCloseTo(12, 1);
  expect(output.filledSeconds).toBe(0);
  expect(sourceSeconds).toBe(output.durationSeconds);
  const part = await extract(path, folder.at('part.flac'), { format: 'flac', start: 5, end: 8 });
  const samples = await decodedSamples(part.output.path, RATE);
  expect(part.output.durationSeconds).toBe(3);
  expect(level(samples, 400, 0)).toBeGreaterThan(-20);
  expect(level(samples, 1000, 1.5)).toBeGreaterThan(-20);
});

/** As many as ffmpeg opens are accepted, in each container. A program of a transport stream has room for 80. */
const MANY = 450;
const programs = Array.from({ length: Math.ceil(MANY / 80) }, (_, nth) => {
  const streams = Array.from(
    { length: Math.min(80, MANY - 80 * nth) },
    (_, place) => `st=${80 * nth + place}`,
  );
  return ['-program', `title=p${nth}:${streams.join(':')}`];
}).flat();

it.each([
  ['mka', ['-c:a', 'pcm_s16le', '-default_mode', 'passthrough']],
  ['mov', ['-c:a', 'pcm_s16le']],
  ['ts', ['-c:a', 'mp2', ...programs]],
])('of 450 tracks in %s any is chosen by its number, and 64 are offered', async (container, options) => {
  const chosen = 400;
  const maps = Array.from({ length: MANY }, (_, nth) => ['-map', nth === chosen ? '1' : '0']).flat();
  const path = await cachedMedia(`many.${container}`, [
    ...[...tone(400, 1), ...tone(1000, 1), ...maps, '-ar', '8000', '-disposition', '0'],
    ...[`-disposition:a:${chosen}`, 'default', ...(container === 'ts' ? ['-ar', '16000'] : []), ...options],
  ]);
  const probed = await probe(tools, path, { signal: noAbort });
  expect(offeredTracks(probed).map(({ index }) => index)).toEqual(
    Array.from({ length: 64 }, (_, nth) => nth),
  );
  expect(() => chooseTrack(probed, MANY)).toThrow(
    expect.objectContaining({
      details: expect.stringMatching(/^no audio track 450; the file has 0: .*; 386 more$/),
    }),
  );
  for (const [track, hz] of [
    [chosen, 1000],
    [chosen - 1, 400],
    // A transport stream does not say which is the default one.
    [undefined, container === 'ts' ? 400 : 1000],
  ]) {
    const { output } = await extract(path, folder.at(`one-${track}.wav`), { format: 'wav', track });
    expect(level(await decodedSamples(output.path, RATE), hz ?? 0, 0), `track ${track}`).toBeGreaterThan(-20);
  }
});

it('what passes the declared end by as much as was filled is a delay, and no silence', async () => {
  const filter = "aselect='not(between(t,1,3))'";
  const gap = await cachedMedia('gap.mkv', [
    ...tone(400, 6, filter),
    '-c:a',
    'flac',
    '-fps_mode',
    'passthrough',
  ]);
  const whole = await extract(gap, folder.at('gap.flac'), { format: 'flac' });
  expect(whole.output.durationSeconds).toBeCloseTo(6, 1);
  expect(whole.output.filledSeconds).toBeCloseTo(2, 1);
  const bytes = await readFile(gap);
  const said = bytes.lastIndexOf('00:00:06.');
  bytes.write('00:00:04.', said, 'latin1');
  const delayed = folder.at('delayed.mkv');
  await writeFile(delayed, bytes);
  const { output, sourceSeconds } = await extract(delayed, folder.at('delayed.flac'), { format: 'flac' });
  expect(output.filledSeconds).toBe(0);
  expect(output.durationSeconds).toBeCloseTo(4, 1);
  expect(sourceSeconds).toBe(output.durationSeconds);
  const cut = await extract(delayed, folder.at('cut.flac'), { format: 'flac', start: 0.5, end: 2 });
  expect(cut.output).toMatchObject({ durationSeconds: 1.5, filledSeconds: 0 });
});
