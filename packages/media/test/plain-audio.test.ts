/** That our own answer about plain WAV, FLAC and Ogg Opus is ffprobe's, and what is left to ffprobe. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { askFfprobe, type FfprobeAnswer } from '../src/ffprobe.ts';
import { plainAudio } from '../src/plain-audio.ts';

const folder = mediaFolder();

const tone = (rate: number, seconds: number, ...options: string[]): string[] => [
  ...['-f', 'lavfi', '-i', `sine=440:r=${rate}:d=${seconds}`, ...options],
];
const TAGS = ['-metadata', 'title=Greetings', '-metadata', 'artist=Ana', '-metadata', 'date=2020'];

function demuxerOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

async function answered(path: string): Promise<FfprobeAnswer | null> {
  return plainAudio({ path, demuxer: demuxerOf(path), sizeBytes: (await stat(path)).size });
}

/** What a probe takes of it. */
function taken({ format, chapters, streams }: FfprobeAnswer) {
  return {
    format,
    chapters,
    streams: streams.map(({ duration_ts: _ts, has_b_frames: _b, bits_per_raw_sample: raw, ...stream }) => ({
      ...stream,
      ...(raw ? { bits_per_raw_sample: raw } : {}),
    })),
  };
}

async function expectSame(path: string): Promise<void> {
  const ours = await answered(path);
  if (ours === null) throw new Error('it was left to ffprobe');
  const demuxer = demuxerOf(path);
  const container = { name: demuxer, demuxer, declares: 'header' } as Parameters<typeof askFfprobe>[2];
  const { answer } = await askFfprobe(tools, path, container, noAbort);
  expect(taken(ours)).toEqual(taken(answer));
}

it.each<[string, string, readonly string[]]>([
  ['WAV, mono', 'mono.wav', tone(44_100, 1.234567)],
  ['WAV, stereo with tags', 'stereo.wav', tone(48_000, 3, '-ac', '2', ...TAGS)],
  ['WAV of telephones', 'low.wav', tone(8000, 2, '-bitexact')],
  ['FLAC, mono', 'mono.flac', tone(44_100, 1.234567)],
  ['FLAC, stereo of 24 bits', 'deep.flac', tone(96_000, 2, '-ac', '2', '-sample_fmt', 's32')],
  [
    'FLAC of an album',
    'album.flac',
    tone(
      48_000,
      3,
      ...TAGS,
      ...['-metadata', 'comment=Grüße', '-metadata', 'track=3/9', '-metadata', 'album_artist=B'],
    ),
  ],
  ['Opus, mono', 'mono.ogg', tone(48_000, 5, '-c:a', 'libopus', '-b:a', '16k')],
  ['Opus, stereo with tags', 'stereo.ogg', tone(48_000, 12, '-c:a', 'libopus', '-ac', '2', ...TAGS)],
  ['Opus of 60 ms a packet', 'long.ogg', tone(16_000, 7, '-c:a', 'libopus', '-frame_duration', '60')],
])('answers as ffprobe does about %s', async (_name, file, options) => {
  await expectSame(await cachedMedia(file, options));
});

it.each<[string, string, readonly string[]]>([
  ['six channels', 'six.wav', tone(48_000, 1, '-ac', '6')],
  ['samples of floating point', 'float.wav', tone(48_000, 1, '-c:a', 'pcm_f32le')],
  ['G.711', 'law.wav', tone(8000, 1, '-c:a', 'pcm_alaw')],
  ['RF64', 'large.wav', tone(48_000, 1, '-rf64', 'always')],
  ['six channels in FLAC', 'six.flac', tone(48_000, 1, '-ac', '6')],
  ['ReplayGain', 'gain.flac', tone(48_000, 1, '-metadata', 'REPLAYGAIN_TRACK_GAIN=-3 dB')],
  ['Vorbis', 'vorbis.ogg', tone(48_000, 3, '-c:a', 'libvorbis')],
  ['FLAC in Ogg', 'flac.ogg', tone(48_000, 3, '-c:a', 'flac')],
  ['Opus of one page', 'page.ogg', tone(48_000, 0.5, '-c:a', 'libopus')],
  ['a cut, which begins late', 'late.ogg', tone(48_000, 3, '-c:a', 'libopus', '-output_ts_offset', '2')],
])('leaves %s to ffprobe', async (_name, file, options) => {
  expect(await answered(await cachedMedia(file, options))).toBeNull();
});

it('leaves DTS that calls itself PCM to ffprobe', async () => {
  const bytes = await readFile(await cachedMedia('mono.wav', tone(44_100, 1.234567)));
  const path = folder.at('dts.wav');
  bytes.set([0xfe, 0x7f, 0x01, 0x80], bytes.indexOf('data') + 8 + 400);
  await writeFile(path, bytes);
  expect(await answered(path)).toBeNull();
});

it('leaves a chain of streams to ffprobe', async () => {
  const [one, two] = await Promise.all(
    [5, 6].map(async (seconds) =>
      readFile(await cachedMedia(`part${seconds}.ogg`, tone(48_000, seconds, '-c:a', 'libopus'))),
    ),
  );
  const path = folder.at('chain.ogg');
  await writeFile(path, Buffer.concat([one ?? Buffer.alloc(0), two ?? Buffer.alloc(0)]));
  expect(await answered(path)).toBeNull();
});

it.each(['mono.wav', 'mono.flac', 'mono.ogg'])(
  'never throws, whatever a byte of %s is, or where it ends',
  async (name) => {
    const options =
      name === 'mono.ogg' ? tone(48_000, 5, '-c:a', 'libopus', '-b:a', '16k') : tone(44_100, 1.234567);
    const bytes = await readFile(await cachedMedia(name, options));
    const changed = folder.at(`changed-${name}`);
    for (let at = 0; at < 256; at += 3) {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ 0xff;
      await writeFile(changed, copy);
      expect((await answered(changed))?.streams.length ?? 1).toBe(1);
      await writeFile(changed, bytes.subarray(0, at));
      expect(await answered(changed)).toBeNull();
    }
  },
);
