/** Every format from every kind of source, and in every quality, checked by ffprobe and by decoding. */
import { describe, expect, it } from 'vitest';
import { type FormatName, formats, qualities } from '../../src/contract/formats.ts';
import { currentRun, rowsOfRun } from '../by-run.ts';
import { extract } from './extracting.ts';
import { decodedSamples, decodedSeconds, ffmpeg, inspect, packetHash, packetKbps } from './oracle.ts';
import { mediaFolder, type SourceName } from './sources.ts';

const folder = mediaFolder();
const formatNames = Object.keys(formats) as FormatName[];

/** What ffprobe calls the file, and the audio in it. */
const expected: Record<FormatName, { container: RegExp; codec: string }> = {
  mp3: { container: /^mp3$/, codec: 'mp3' },
  aac: { container: /^aac$/, codec: 'aac' },
  m4a: { container: /m4a/, codec: 'aac' },
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
  'opus.webm opus',
  'flac.mkv flac',
  'pcm.mov wav',
  'mp3.avi mp3',
];

/** In the core of each source what is a copy and one encoding or two, so that each format is encoded once; then everything else from everything. */
function formatsFrom(source: SourceName): readonly FormatName[] {
  const nth = sources.indexOf(source);
  return rowsOfRun(
    formatNames,
    (format, of) =>
      of % sources.length === (nth + 3) % sources.length || copies.includes(`${source} ${format}`),
  );
}

describe.each(sources)('%s', (source) => {
  it.each(formatsFrom(source))('becomes %s', async (format) => {
    const input = await folder.source(source);
    const output = folder.at(`${source}.${format}`);
    const { output: file } = await extract(input, output, { format });

    const { format: container, audio } = await inspect(output);
    const seconds = await decodedSeconds(output);
    expect(container.format_name).toMatch(expected[format].container);
    expect(audio.codec_name).toBe(expected[format].codec);
    expect(audio.channels).toBe(format === 'voice' ? 1 : 2);
    expect(audio.sample_rate).toBe('48000');
    expect(Math.abs(seconds - (await decodedSeconds(input)))).toBeLessThan(0.05);
    expect(file).toMatchObject({
      codec: audio.codec_name,
      channels: audio.channels,
      sampleRate: format === 'voice' ? 16_000 : 48_000,
      copied: copies.includes(`${source} ${format}`),
    });
    expect(Math.abs(file.durationSeconds - seconds)).toBeLessThan(0.03);
    expect(file.bitrateKbps / (await packetKbps(output))).toBeCloseTo(1, 1);
    // ADTS has a header in each packet.
    if (file.copied && format !== 'aac') expect(await packetHash(output)).toBe(await packetHash(input));
  });
});

describe('quality', () => {
  const constantRate: readonly FormatName[] = ['mp3', 'aac', 'm4a'];

  for (const format of formatNames.filter((name) => formats[name].quality !== 'lossless')) {
    const chosen = formatNames.indexOf(format) % qualities.length;
    it.each(rowsOfRun(qualities, (_, nth) => nth === chosen))(
      `%s of ${format} is encoded at its bitrate`,
      async (quality) => {
        const input = await folder.source('flac.mkv');
        const output = folder.at(`${quality}.${format}`);
        const { output: file } = await extract(input, output, { format, quality });
        const kbps = await packetKbps(output);
        expect(file.copied).toBe(false);
        expect(file.bitrateKbps / kbps).toBeCloseTo(1, 1);
        const asked = (formats[format].quality as Record<string, number>)[quality] ?? 0;
        // Vorbis and Opus vary with the sound: there the bitrate is a direction, so that the order has to hold.
        const tolerance = constantRate.includes(format) ? 0.1 : 0.35;
        expect(Math.abs(kbps / asked - 1)).toBeLessThan(tolerance);
      },
    );
  }

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
    const input = folder.at('full-scale.wav');
    const output = folder.at('mix.m4a');
    // lavfi's sine is at 1/8.
    await ffmpeg(
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'sine=997:d=1,volume=7.9,pan=stereo|c0=c0|c1=c0',
      '-c:a',
      'pcm_f32le',
      input,
    );
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
      const { audio } = await inspect(output);
      expect(audio).toMatchObject({ sample_rate: String(sampleRate), channels });
      expect(file).toMatchObject({ sampleRate, channels });
      expect(Math.abs((await decodedSeconds(output)) - file.durationSeconds)).toBeLessThan(0.05);
    },
  );

  it.runIf(currentRun === 'core')(
    'takes the nearest bitrate where the source is too narrow for the quality',
    async () => {
      const output = folder.at('phone.mp3');
      await extract(await folder.source('phone.wav'), output, { format: 'mp3', quality: 'extreme' });
      expect(await packetKbps(output)).toBeGreaterThan(60);
      expect((await inspect(output)).audio.sample_rate).toBe('8000');
    },
  );
});
