/** Levels of mixes, and labels of channels, against ffmpeg's own mix to floating point (decisions A3, "Mixing down"). */
// @module-tag quick-ffmpeg
import { FormatName } from 'soundpost-contract/formats';
import { byRun, currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract, extractSeveral } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaTools, systemTools } from 'soundpost-testing/media-tools';
import { inspect, measureLoudness } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();

/** Speech in the centre of a film, with quiet sound around it. */
const CENTRE = '0.12*sin(2*PI*(300+40*t)*t)*(0.1+0.9*gt(mod(t\\,0.7)\\,0.25))';
const around = (hz: number) => `0.05*sin(2*PI*${hz}*t)`;
const layouts = {
  '5.1': [around(200), around(210), CENTRE, '0', around(150), around(160)],
  '5.1(side)': [around(200), around(210), CENTRE, '0', around(150), around(160)],
  '7.1': [around(200), around(210), CENTRE, '0', around(150), around(160), around(170), around(180)],
  quad: [CENTRE, around(210), around(150), around(160)],
  'quad(side)': [CENTRE, around(210), around(150), around(160)],
  '3.0': [around(200), around(210), CENTRE],
} as const;
type Layout = keyof typeof layouts;

const codecs = {
  aac: ['mp4', '-b:a', '384k'],
  ac3: ['mkv', '-b:a', '448k'],
  eac3: ['mkv', '-b:a', '448k'],
  libopus: ['mkv', '-b:a', '384k', '-mapping_family', '1'],
  flac: ['flac'],
  pcm_s16le: ['wav'],
  dca: ['mkv', '-strict', '-2', '-b:a', '1411k'],
  truehd: ['mkv', '-strict', '-2'],
  mlp: ['mkv', '-strict', '-2'],
} as const;
type Codec = keyof typeof codecs;

const sound = (channels: readonly string[], layout: string) => [
  ...['-f', 'lavfi', '-i', `aevalsrc=${channels.join('|')}:s=48000:d=6:c=${layout}`],
];

/** With the layout as ffprobe names it; undefined: it does not. */
async function film(layout: Layout, codec: Codec, named: string | undefined): Promise<string> {
  const [container, ...options] = codecs[codec];
  const args = [...sound(layouts[layout], layout), '-c:a', codec, ...options];
  const path = await cachedMedia(`film.${container}`, args);
  expect((await inspect(path)).audio.channel_layout).toBe(named);
  return path;
}

/** The loudness of ffmpeg's mix, or of other filters over the file. */
async function reference(path: string, ...filters: readonly string[]): Promise<number> {
  const mixed = await cachedMedia('mix.wav', ['-i', path, ...filters, '-c:a', 'pcm_f32le']);
  return (await measureLoudness(mixed)).lufs;
}

async function loudnessOf(path: string): Promise<number> {
  return (await measureLoudness(path)).lufs;
}

async function isDecoded(...row: Parameters<typeof film>): Promise<boolean> {
  return film(...row)
    .then((path) => reference(path, '-ac', '2'))
    .then(Number.isFinite, () => false);
}

/** What each encoder of ffmpeg 5.1 can make. */
const layoutsOf: Readonly<Record<Codec, readonly Layout[]>> = {
  aac: ['5.1', '7.1', 'quad', '3.0'],
  ac3: ['5.1(side)', 'quad(side)', '3.0'],
  eac3: ['5.1(side)', 'quad(side)', '3.0'],
  libopus: ['5.1', '7.1', 'quad', '3.0'],
  flac: ['5.1', '5.1(side)', '7.1', 'quad', '3.0'],
  pcm_s16le: ['5.1', '5.1(side)', '7.1', 'quad', '3.0'],
  dca: ['5.1(side)', 'quad(side)'],
  // What it makes of more than two channels no decoder of ffmpeg 7 takes, stock ones neither.
  truehd: [],
  // Which is TrueHD's coding, of fewer parts: by the same decoder.
  mlp: ['5.1'],
};
const isSystems = mediaTools.ffmpegPath === systemTools.ffmpegPath;
const TRUE_HD = ['5.1', 'truehd', '5.1(side)'] as const;
const films: readonly (readonly [Layout, Codec, string | undefined])[] = [
  ...(Object.keys(codecs) as Codec[]).flatMap((codec) =>
    layoutsOf[codec].map((layout) => [layout, codec, layout] as const),
  ),
  // AAC has no code for it: it counts as the default layout of six.
  ['5.1(side)', 'aac', undefined],
  ...(isSystems && (await isDecoded(...TRUE_HD)) ? [TRUE_HD] : []),
];

/** `--all` takes the core alone on the system's ffmpeg. */
const isCore = ([, codec]: (typeof films)[number], nth: number) => nth === 0 || codec === 'truehd';

it.each(rowsOfRun(films, isCore))('a film in %s, %s, has its level in every output', async (...row) => {
  const path = await film(...row);
  const formats = ['mp3', 'm4a', 'opus', 'voice'] as const;
  const wanted = formats.map((format) => ({ path: folder.at(`film.${format}`), request: { format } }));
  await extractSeveral(path, wanted);
  const [stereo, mono] = [await reference(path, '-ac', '2'), await reference(path, '-ac', '1')];
  for (const { path: made, request } of wanted) {
    const level = request.format === 'voice' ? mono : stereo;
    expect(Math.abs((await loudnessOf(made)) - level), request.format).toBeLessThan(0.5);
  }
});

it.runIf(currentRun === 'core')('a mix of full scale reaches the encoder below −1 dBTP', async () => {
  const square = (hz: number) => `0.99*sgn(sin(2*PI*${hz}*t))`;
  const channels = [square(210), square(330), square(517), '0', '0.99*(random(0)*2-1)', square(440)];
  const path = await cachedMedia('full.wav', sound(channels, '5.1'));
  for (const mix of [1, 2]) {
    const { output } = await extract(path, folder.at('full.wav'), { format: 'wav', channels: mix });
    expect((await measureLoudness(output.path)).truePeakDbtp).toBeLessThanOrEqual(-1);
  }
});

const LEFT = '0.3*sin(2*PI*(300+40*t)*t)*(0.2+0.8*gt(mod(t\\,0.7)\\,0.25))';
const RIGHT = '0.2*sin(2*PI*(700+30*t)*t)*(0.2+0.8*gt(mod(t\\,0.9)\\,0.4))';

const MEAN = ['-af', 'pan=mono|c0=0.5*c0+0.5*c1'];
/** By their places, whatever their labels. */
const places = (...channels: readonly number[]) => [
  '-af',
  `channelmap=map=${channels.join('|')}:channel_layout=${channels.length === 1 ? 'mono' : 'stereo'}`,
];

const labels = ['FL', 'FR', 'FC', 'LFE', 'BL', 'BR', 'SL', 'SR'];
const pairs = labels.flatMap((one, nth) => labels.slice(nth + 1).map((other) => `${one}+${other}`));

describe.each(rowsOfRun(['FL', 'FC+LFE', ...labels.slice(1), ...pairs, 'DL+DR'], 2))('labels %s', (label) => {
  it('are taken by their place in every format', async () => {
    const names = label.split('+');
    const tones = [LEFT, RIGHT].slice(0, names.length);
    const path = await cachedMedia('labels.mov', [...sound(tones, label), '-c:a', 'pcm_s16le']);
    const formats = byRun({ core: ['m4a', 'opus', 'voice'], all: FormatName.options });
    const wanted = formats.map((format) => ({
      path: folder.at(`labels.${format}`),
      request: { format, copy: 'never' },
    }));
    const { files } = await extractSeveral(path, wanted);
    const same = await reference(path, ...places(...names.keys()));
    const mono = names.length === 1 ? same : await reference(path, ...MEAN);
    for (const [nth, { path: made, request }] of wanted.entries()) {
      const level = files[nth]?.channels === 1 ? mono : same;
      expect(Math.abs((await loudnessOf(made)) - level), request.format).toBeLessThan(0.5);
    }
  });
});

describe.runIf(currentRun === 'core')('mono of two channels', () => {
  it.each([
    ['of other sound, is their mean', LEFT, RIGHT, [], MEAN],
    ['of which the right one is silent, is the left one', LEFT, '0', ['ONE_SIDED'], places(0)],
    ['out of phase, is the left one', LEFT, `-1*${LEFT}`, ['CANCELLED_OUT'], places(0)],
  ] as const)('%s', async (_, left, right, warnings, filters) => {
    const path = await cachedMedia('two.wav', sound([left, right], 'stereo'));
    const level = await reference(path, ...filters);
    const { output } = await extract(path, folder.at('two.ogg'), { format: 'voice' });
    expect(output.warnings).toEqual(warnings);
    expect(Math.abs((await loudnessOf(output.path)) - level)).toBeLessThan(0.5);
    const loud = await extract(path, folder.at('loud.mp3'), {
      ...{ format: 'mp3', channels: 1, loudness: -20 },
    });
    expect(loud.output.warnings).toEqual(warnings);
    expect(Math.abs((await loudnessOf(loud.output.path)) - -20)).toBeLessThan(0.5);
  });

  it('of which the left one is silent, is the right one', async () => {
    const path = await cachedMedia('right.wav', sound(['0', LEFT], 'stereo'));
    const { output } = await extract(path, folder.at('right.ogg'), { format: 'voice' });
    expect(output.warnings).toEqual(['ONE_SIDED']);
    const right = await reference(path, ...places(1));
    expect(Math.abs((await loudnessOf(output.path)) - right)).toBeLessThan(0.5);
  });
});

it.runIf(currentRun === 'core')('a silent track has a warning', async () => {
  const { output } = await extract(await folder.source('silence.wav'), folder.at('silent.mp3'), {
    format: 'mp3',
  });
  expect(output.warnings).toEqual(['SILENT']);
});

it.runIf(currentRun === 'core')('channels that nothing names are shared equally above 8', async () => {
  const seven = sound(['0', '0', '0', '0', '0', LEFT, RIGHT], '6.1');
  const five = sound(['0', '0', '0', '0', '0'], '5.0');
  const bare = await cachedMedia('twelve.raw', [
    ...[...seven, ...five, '-filter_complex', 'amerge=inputs=2', '-f', 's16le', '-c:a', 'pcm_s16le'],
  ]);
  const raw = await cachedMedia('twelve.wav', [
    ...['-f', 's16le', '-ar', '48000', '-ac', '12', '-i', bare, '-c:a', 'copy'],
  ]);
  expect((await inspect(raw)).audio.channel_layout).toBeUndefined();
  const { output } = await extract(raw, folder.at('twelve.flac'), { format: 'flac', channels: 2 });
  const twelfths = Array.from({ length: 12 }, (_, nth) => `0.083333*c${nth}`).join('+');
  const level = await reference(raw, '-af', `pan=stereo|c0=${twelfths}|c1=${twelfths}`);
  expect(Math.abs((await loudnessOf(output.path)) - level)).toBeLessThan(0.5);
});
