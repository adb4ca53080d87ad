/** Every format from every kind of source, and in every quality, checked by ffprobe and by decoding. */
// @module-tag quick-ffmpeg

import { type FormatName, formats, qualities } from 'soundpost-contract/formats';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract, extractSeveral } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSamples, examine, inspect } from 'soundpost-testing/oracle';
import { mediaFolder, type SourceName } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();
const formatNames = Object.keys(formats) as FormatName[];

/** What ffprobe calls the file, and the audio in it. */
const expected: Record<FormatName, { container: RegExp; codec: string }> = {
  mp3: { container: /^mp3$/, codec: 'mp3' },
  aac: { container: /^aac$/, codec: 'aac' },
  m4a: { container: /m4a/, codec: 'aac' },
  m4b: { container: /m4a/, codec: 'aac' },
  flac: { container: /^flac$/, codec: 'flac' },
  wav: { container: /^wav$/, codec: 'pcm_s16le' },
  ogg: { container: /^ogg$/, codec: 'vorbis' },
  opus: { container: /^ogg$/, codec: 'opus' },
  voice: { container: /^ogg$/, codec: 'opus' },
};

const sources: readonly SourceName[] = ['aac.mp4', 'opus.webm', 'flac.mkv', 'pcm.mov', 'ac3.ts', 'mp3.avi'];

/** Where the audio that is in the source is what was asked for. */
const copies: readonly string[] = [
  'aac.mp4 aac',
  'aac.mp4 m4a',
  'aac.mp4 m4b',
  'opus.webm opus',
  'flac.mkv flac',
  'pcm.mov wav',
  'mp3.avi mp3',
];

/** What else the core makes of each: with the copies, each format is encoded once. */
const encodings: Partial<Record<SourceName, readonly FormatName[]>> = {
  'aac.mp4': ['flac'],
  'flac.mkv': ['aac', 'm4a', 'wav', 'ogg', 'opus', 'voice'],
  'ac3.ts': ['mp3'],
};

/** `all` makes everything else from everything. */
function formatsFrom(source: SourceName): readonly FormatName[] {
  return rowsOfRun(
    formatNames,
    (format) => copies.includes(`${source} ${format}`) || encodings[source]?.includes(format) === true,
  );
}

describe.each(sources)('%s', (source) => {
  const wanted = formatsFrom(source).map((format) => ({ format, request: { format } }));

  it(`becomes ${wanted.map(({ format }) => format).join(', ')}`, async () => {
    const input = await folder.source(source);
    const before = await examine(input);
    const paths = wanted.map(({ format }) => folder.at(`${source}.${format}`));
    const { files } = await extractSeveral(
      input,
      wanted.map(({ request }, nth) => ({ request, path: paths[nth] ?? '' })),
    );
    for (const [nth, { format }] of wanted.entries()) {
      const { format: container, audio, seconds, kbps, packetHash } = await examine(paths[nth] ?? '');
      expect(container.format_name).toMatch(expected[format].container);
      expect(audio.codec_name).toBe(expected[format].codec);
      expect(audio.channels).toBe(format === 'voice' ? 1 : 2);
      expect(audio.sample_rate).toBe('48000');
      expect(Math.abs(seconds - before.seconds)).toBeLessThan(0.05);
      const isCopy = copies.includes(`${source} ${format}`);
      expect(files[nth]).toMatchObject({
        codec: audio.codec_name,
        channels: audio.channels,
        sampleRate: format === 'voice' ? 16_000 : 48_000,
        copied: isCopy,
        durationSeconds: expect.closeTo(seconds, 1),
      });
      expect((files[nth]?.bitrateKbps ?? 0) / kbps).toBeCloseTo(1, 1);
      // ADTS has a header in each packet.
      if (isCopy && format !== 'aac') expect(packetHash).toBe(before.packetHash);
    }
  });
});

describe('quality', () => {
  const constantRate: readonly FormatName[] = ['mp3', 'aac', 'm4a'];
  const lossy = formatNames.filter((name) => formats[name].quality !== 'lossless');
  const rows = lossy.flatMap((format) => qualities.map((quality) => ({ format, quality })));
  const wanted = rowsOfRun(
    rows,
    ({ format, quality }) => `${format} ${quality}` === 'mp3 low' || `${format} ${quality}` === 'ogg extreme',
  );

  it(`is the bitrate: ${wanted.map(({ format, quality }) => `${format} ${quality}`).join(', ')}`, async () => {
    const paths = wanted.map(({ format, quality }) => folder.at(`${quality}.${format}`));
    const { files } = await extractSeveral(
      await folder.source('flac.mkv'),
      wanted.map((request, nth) => ({ request, path: paths[nth] ?? '' })),
    );
    for (const [nth, { format, quality }] of wanted.entries()) {
      const { kbps } = await examine(paths[nth] ?? '');
      expect(files[nth]?.copied).toBe(false);
      expect((files[nth]?.bitrateKbps ?? 0) / kbps).toBeCloseTo(1, 1);
      const asked = (formats[format].quality as Record<string, number>)[quality] ?? 0;
      // Vorbis and Opus vary with the sound: there the bitrate is a direction.
      const tolerance = constantRate.includes(format) ? 0.1 : 0.35;
      expect(Math.abs(kbps / asked - 1), `${format} ${quality}`).toBeLessThan(tolerance);
    }
  });

  const depths = [
    { format: 'flac', source: 'flac24.mkv', quality: 'high', bits: 24 },
    { format: 'wav', source: 'flac24.mkv', quality: 'low', bits: 16 },
    { format: 'flac', source: 'flac24.mkv', quality: 'low', bits: 16 },
    { format: 'flac', source: 'flac24.mkv', quality: 'medium', bits: 16 },
    { format: 'flac', source: 'flac24.mkv', quality: 'extreme', bits: 24 },
    { format: 'wav', source: 'flac24.mkv', quality: 'high', bits: 24 },
    { format: 'flac', source: 'aac.mp4', quality: 'extreme', bits: 16 },
    { format: 'wav', source: 'flac.mkv', quality: 'extreme', bits: 16 },
  ] as const;
  it.each(rowsOfRun(depths, (_, nth) => nth < 2))(
    '$quality of $format from $source has $bits bits',
    async ({ format, source, quality, bits }) => {
      const output = folder.at(`${quality}-${source}.${format}`);
      const { output: file } = await extract(await folder.source(source), output, {
        format,
        quality,
        copy: 'never',
      });
      const { audio } = await inspect(output);
      expect(file.copied).toBe(false);
      expect(`${audio.codec_name} ${audio.bits_per_raw_sample ?? ''}`).toContain(bits === 24 ? '24' : '16');
    },
  );
});

describe('channels and sample rate', () => {
  const mixes = [
    { format: 'm4a', channels: 2 },
    { format: 'flac', channels: 6 },
    { format: 'mp3', channels: 2 },
    { format: 'voice', channels: 1 },
    { format: 'wav', channels: 6 },
  ] as const;
  it.each(rowsOfRun(mixes, (_, nth) => nth < 2))(
    '5.1 becomes $format with $channels channels',
    async ({ format, channels }) => {
      const output = folder.at(`surround.${format}`);
      const { output: file } = await extract(await folder.source('surround.mkv'), output, { format });
      expect((await inspect(output)).audio.channels).toBe(channels);
      expect(file).toMatchObject({ channels, copied: false });
    },
  );

  it.runIf(currentRun === 'core')('mixes down without going over full scale', async () => {
    const output = folder.at('mix.m4a');
    // lavfi's sine is at 1/8.
    const graph = 'sine=997:d=1,volume=7.9,pan=stereo|c0=c0|c1=c0';
    const input = await cachedMedia('full-scale.wav', ['-f', 'lavfi', '-i', graph, '-c:a', 'pcm_f32le']);
    await extract(input, output, { format: 'm4a', channels: 1 });
    const samples = await decodedSamples(output, 44_100);
    const loudest = samples.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0);
    expect(loudest).toBeGreaterThan(0.9);
    expect(loudest).toBeLessThan(1.05);
  });

  const rates = [
    { format: 'mp3', sampleRate: 22050, channels: 1 },
    { format: 'wav', sampleRate: 96000, channels: 2 },
    { format: 'flac', sampleRate: 8000, channels: 1 },
  ] as const;
  it.each(rowsOfRun(rates, ({ format }) => format === 'mp3'))(
    '$format takes $sampleRate Hz and $channels channels',
    async ({ format, sampleRate, channels }) => {
      const output = folder.at(`${sampleRate}.${format}`);
      const { output: file } = await extract(await folder.source('aac.mp4'), output, {
        format,
        sampleRate,
        channels,
      });
      const { audio, seconds } = await examine(output);
      expect(audio).toMatchObject({ sample_rate: String(sampleRate), channels });
      expect(file).toMatchObject({ sampleRate, channels });
      expect(Math.abs(seconds - file.durationSeconds)).toBeLessThan(0.05);
    },
  );

  it.runIf(currentRun === 'core')(
    'takes the nearest bitrate where the source is too narrow for the quality',
    async () => {
      const output = folder.at('phone.mp3');
      await extract(await folder.source('phone.wav'), output, { format: 'mp3', quality: 'extreme' });
      const { kbps, audio } = await examine(output);
      expect(kbps).toBeGreaterThan(60);
      expect(audio.sample_rate).toBe('8000');
    },
  );
});
