/** That our own answer about a plain MP4 is ffprobe's in all that a probe takes of it, and what is left to ffprobe. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { askFfprobe, type FfprobeAnswer } from '../src/ffprobe.ts';
import { plainMovie } from '../src/plain-movie.ts';
import { NotInPlace } from '../src/reading/in-place.ts';

const folder = mediaFolder();
const MOV = { name: 'mp4', demuxer: 'mov', declares: 'header' } as const;

const tone = (rate: number, seconds: number): string[] => [
  ...['-f', 'lavfi', '-i', `sine=440:r=${rate}:d=${seconds}`],
];
const pictures = (rate: string, seconds: number): string[] => [
  ...['-f', 'lavfi', '-i', `testsrc2=s=64x64:r=${rate}:d=${seconds}`],
];
const AAC = ['-c:a', 'aac', '-ac', '2'];
const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf'];

const plain: readonly (readonly [string, string, readonly string[]])[] = [
  ...[32_000, 44_100, 48_000, 96_000].map(
    (rate) => [`mono of ${rate} Hz`, 'mono.m4a', [...tone(rate, 1.234567), '-c:a', 'aac']] as const,
  ),
  ['stereo', 'stereo.m4a', [...tone(48_000, 7.77), ...AAC]],
  ['an index in front', 'front.mp4', [...tone(44_100, 2), ...AAC, '-movflags', '+faststart']],
  ['no edit list', 'unedited.m4a', [...tone(44_100, 2), ...AAC, '-use_editlist', '0']],
  ['pictures', 'pictures.mp4', [...pictures('25', 2), ...tone(48_000, 2), ...X264, '0', ...AAC]],
  [
    'pictures out of order, at 29.97 a second',
    'b-frames.mp4',
    [...pictures('30000/1001', 3), ...tone(48_000, 3.3), ...X264, '3', ...AAC],
  ],
  [
    'two tracks with languages',
    'two.mp4',
    [
      ...[...tone(48_000, 2), ...tone(44_100, 3), '-map', '0', '-map', '1', ...AAC],
      ...['-metadata:s:a:0', 'language=ger', '-disposition:a:1', '0'],
    ],
  ],
  [
    'tags and a time',
    'tagged.m4a',
    [
      ...[...tone(48_000, 1), ...AAC, '-metadata', 'title=Grüße', '-metadata', 'date=2020'],
      ...['-metadata', 'creation_time=2024-01-02T03:04:05Z', '-metadata', 'comment=c'],
    ],
  ],
];

/** What probe.ts takes: of pictures their place and their beginning. */
function taken({ format, chapters, streams }: FfprobeAnswer) {
  return {
    format,
    chapters,
    streams: streams.map(
      ({ has_b_frames: _b, duration_ts: _t, bits_per_sample, bits_per_raw_sample = 0, ...stream }) => {
        expect(bits_per_sample ?? 0).toBe(0);
        if (stream.codec_type === 'audio') expect(bits_per_raw_sample).toBe(0);
        const { index, id, codec_type, start_time, disposition } = stream;
        return codec_type === 'audio' ? stream : { index, id, codec_type, start_time, disposition };
      },
    ),
  };
}

const answered = async (path: string, mostBytes?: number): Promise<FfprobeAnswer | null> => {
  const { size: sizeBytes } = await stat(path);
  return plainMovie({ path, demuxer: 'mov', sizeBytes }, mostBytes);
};

async function expectSame(path: string): Promise<void> {
  const ours = await answered(path);
  if (ours === null) throw new Error('it was left to ffprobe');
  const { answer } = await askFfprobe(tools, path, MOV, noAbort);
  const { format, ...rest } = taken(answer);
  // Of the tracks, as ffmpeg 7.1; 5.1 answers the header's, which a cut leaves longer.
  const { duration = 0 } = ours.format;
  const longest = Math.max(...answer.streams.map((stream) => stream.duration ?? 0));
  expect(Math.abs(duration - longest)).toBeLessThan(0.002);
  expect(format.duration).toBeGreaterThan(duration - 0.002);
  expect(taken(ours)).toEqual({ ...rest, format: { ...format, duration } });
}

it.each(plain)('answers as ffprobe does about %s', async (_name, file, options) => {
  await expectSame(await cachedMedia(file, options));
});

it('answers as ffprobe does about a cut without encoding, whose last pictures are missing', async () => {
  const whole = [...pictures('25', 4), ...tone(48_000, 4), ...X264, '3', '-g', '250', ...AAC];
  const path = await cachedMedia('whole.mp4', whole);
  await expectSame(await cachedMedia('cut.mp4', ['-i', path, '-t', '2', '-c', 'copy']));
});

it.each<[string, string, readonly string[]]>([
  ['six channels', 'six.m4a', [...tone(48_000, 1), '-c:a', 'aac', '-ac', '6']],
  ['a rate at which SBR may be hidden', 'low.m4a', [...tone(22_050, 1), ...AAC]],
  ['Opus', 'opus.mp4', [...tone(48_000, 1), '-c:a', 'libopus']],
  ['MP3', 'mp3.mp4', [...tone(48_000, 1), '-c:a', 'libmp3lame']],
  ['AC-3', 'ac3.mp4', [...tone(48_000, 1), '-c:a', 'ac3']],
  ['QuickTime', 'quicktime.mov', [...tone(48_000, 1), ...AAC]],
  ['fragments', 'fragments.mp4', [...tone(48_000, 2), ...AAC, '-movflags', 'empty_moov+frag_keyframe']],
  ['a number of a track', 'numbered.m4a', [...tone(48_000, 1), ...AAC, '-metadata', 'track=3']],
  [
    'pictures that begin late',
    'late.mp4',
    [...pictures('25', 1), ...tone(48_000, 1), ...X264, '2', ...AAC, '-use_editlist', '0'],
  ],
  [
    'sound that begins late',
    'late-sound.mp4',
    [...pictures('25', 2), '-itsoffset', '1', ...tone(48_000, 1), ...X264, '0', ...AAC],
  ],
])('leaves %s to ffprobe', async (_name, file, options) => {
  expect(await answered(await cachedMedia(file, options))).toBeNull();
});

const source = () => cachedMedia('stereo.m4a', [...tone(48_000, 7.77), ...AAC]);

it('leaves a truncated file to ffprobe, and bytes that are no frame of the channels', async () => {
  const bytes = await readFile(await source());
  const short = folder.at('short.m4a');
  await writeFile(short, bytes.subarray(0, bytes.length - 1));
  expect(await answered(short)).toBeNull();
  const media = bytes.indexOf('mdat') + 4;
  const changed = folder.at('changed.m4a');
  // An element of one channel (ISO/IEC 14496-3 table 4.85: 0), where the header says two.
  await writeFile(
    changed,
    Buffer.concat([bytes.subarray(0, media), Buffer.alloc(64), bytes.subarray(media + 64)]),
  );
  expect(await answered(changed)).toBeNull();
});

it('leaves each file to ffprobe of which a byte of the index breaks what it knows', async () => {
  const bytes = await readFile(await source());
  const at = bytes.indexOf('moov');
  const changed = folder.at('byte.m4a');
  // An answer, or none: it never throws, whatever stands there.
  for (let place = at; place < bytes.length; place += 7) {
    const copy = Buffer.from(bytes);
    copy[place] = (copy[place] ?? 0) ^ 0xff;
    await writeFile(changed, copy);
    const answer = await answered(changed);
    expect(answer === null || answer.streams.length === 1).toBe(true);
  }
});

it('reads an index no longer than asked in place', async () => {
  await expect(answered(await source(), 100)).rejects.toBeInstanceOf(NotInPlace);
});
