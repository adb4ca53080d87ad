import { readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { readAnswer } from '../src/ffprobe.ts';
import { probe } from '../src/probe.ts';
import { chooseTrack } from '../src/track-choice.ts';
import { box, FTYP, mdat, plainTables, trak } from './sparse/mp4-boxes.ts';

const folder = mediaFolder();
const probing = (file: string) => probe(tools, file, { signal: noAbort });
const noise = (rate: number, options = '') => [
  '-f',
  'lavfi',
  '-i',
  `anoisesrc=d=2:r=${rate}:a=0.2${options}`,
];

const three = () =>
  cachedMedia('three.mkv', [
    ...['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=10:d=2'],
    ...[...noise(48_000), ...noise(44_100), ...noise(22_050)],
    ...['-map', '0', '-map', '1', '-map', '2', '-map', '3', '-c:v', 'mpeg4'],
    ...['-c:a:0', 'aac', '-c:a:1', 'libopus', '-ar:a:1', '48000', '-c:a:2', 'pcm_s24le', '-ac:a:0', '2'],
    ...['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=ger', '-metadata', 'title=Three'],
    ...['-disposition:a:0', '0', '-disposition:a:1', 'default'],
  ]);

describe('a probe', () => {
  it.each([
    ['mxf', 'pcm_s16le', ['-f', 'mxf_opatom']],
    ['latm', 'aac_latm', []],
  ])('reads %s', async (name, codec, options) => {
    const file = await cachedMedia(`a.${name}`, [...noise(48_000), ...options]);
    expect(await probing(file)).toMatchObject({
      container: { name },
      tracks: [{ codec, sampleRate: 48_000 }],
    });
  });

  it('takes a duration of all ones for unknown, as recorders of fragments write it', async () => {
    const file = await cachedMedia('unknown.mp4', [
      ...[
        ...noise(48_000),
        '-c:a',
        'aac',
        '-movflags',
        'empty_moov+frag_keyframe',
        '-frag_duration',
        '500000',
      ],
    ]);
    const bytes = await readFile(file);
    // Of `mdhd`, version 0: after flags, creation, modification and timescale.
    bytes.writeUInt32BE(0xffff_ffff, bytes.indexOf('mdhd') + 20);
    const changed = folder.at('unknown.mp4');
    await writeFile(changed, bytes);
    const { durationSeconds } = await probing(changed);
    expect(durationSeconds ?? 2).toBeCloseTo(2, 1);
  });

  it('takes a file of sound and a cover for audio only', async () => {
    const cover = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=1:d=1', '-map', '0', '-map', '1'];
    const options = ['-c:v', 'mjpeg', '-frames:v', '1', '-disposition:v', 'attached_pic'];
    const file = await cachedMedia('covered.mp3', [...noise(48_000), ...cover, ...options]);
    expect(await probing(file)).toMatchObject({ isAudioOnly: true, cover: { width: 64 } });
  });

  it('lists the audio tracks by their place among themselves', async () => {
    const { container, tracks, tags, isAudioOnly } = await probing(await three());
    expect(container).toMatchObject({ name: 'mkv', demuxer: 'matroska' });
    expect(tracks).toMatchObject([
      {
        index: 0,
        streamIndex: 1,
        codec: 'aac',
        profile: 'LC',
        language: 'eng',
        channels: 2,
        sampleRate: 48_000,
        isDefault: false,
        bitDepth: null,
      },
      {
        index: 1,
        streamIndex: 2,
        codec: 'opus',
        language: 'ger',
        channels: 1,
        sampleRate: 48_000,
        isDefault: true,
        bitDepth: null,
      },
      {
        index: 2,
        streamIndex: 3,
        codec: 'pcm_s24le',
        language: null,
        channels: 1,
        sampleRate: 22_050,
        isDefault: false,
        bitDepth: 24,
      },
    ]);
    expect(tracks.map(({ declaredSeconds }) => Math.round(declaredSeconds ?? 0))).toEqual([2, 2, 2]);
    expect(tags.title).toBe('Three');
    expect(isAudioOnly).toBe(false);
  });

  it('counts a late track from its own beginning', async () => {
    const pictures = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=10:d=5'];
    const codecs = ['-map', '0', '-map', '1', '-c:v', 'mpeg4', '-c:a', 'libopus'];
    const late = ['-itsoffset', '3', ...noise(48_000)];
    const file = await cachedMedia('late.mkv', [...pictures, ...late, ...codecs]);
    const [track] = (await probing(file)).tracks;
    expect(track.startSeconds).toBeCloseTo(3, 1);
    expect(track.declaredSeconds).toBeCloseTo(2, 1);
  });

  it.each([
    ['adts.aac', 'aac'],
    ['ac3.ts', 'mpegts'],
    ['stereo.opus', 'ogg'],
  ] as const)('takes no estimate of %s for a declared duration', async (source, name) => {
    const { container, tracks } = await probing(await folder.source(source));
    expect(container.name).toBe(name);
    expect(tracks[0].declaredSeconds).toBeNull();
  });

  it.each([
    { depth: 16, options: ['-c:a', 'flac', '-sample_fmt', 's16'] },
    { depth: 24, options: ['-c:a', 'flac', '-sample_fmt', 's32'] },
    { depth: 16, options: ['-c:a', 'alac', '-sample_fmt', 's16p'] },
    { depth: 32, options: ['-c:a', 'pcm_f32le'] },
    { depth: null, options: ['-c:a', 'libmp3lame'] },
  ])('$options has a depth of $depth', async ({ depth, options }) => {
    const file = await cachedMedia('depth.mka', [...noise(44_100), ...options]);
    const [track] = (await probing(file)).tracks;
    expect(track.bitDepth).toBe(depth);
    expect(track.isFloat).toBe(depth === 32);
  });

  it('calls a codec that ffmpeg does not know as the file does', async () => {
    const bytes = await readFile(await cachedMedia('a.m4a', [...noise(48_000), '-c:a', 'aac']));
    bytes.write('apac', bytes.lastIndexOf('mp4a'), 'latin1');
    bytes.write('dapa', bytes.lastIndexOf('esds'), 'latin1');
    await writeFile(folder.at('apac.m4a'), bytes);
    const probed = await probing(folder.at('apac.m4a'));
    expect(probed.tracks).toMatchObject([{ codec: 'apac', isDecodable: false }]);
    expect(() => chooseTrack(probed, undefined)).toThrow(
      expect.objectContaining({
        details: expect.stringMatching(/^audio track 0 is apac, .*convert the file/),
      }),
    );
  });

  it('ends with the signal', async () => {
    const reason = new Error('cancelled');
    const run = probe(tools, await three(), { signal: AbortSignal.abort(reason) });
    await expect(run).rejects.toBe(reason);
  });
});

describe('what cannot be used', () => {
  const invalid = (details: RegExp) => ({
    name: 'MediaFailure',
    code: 'INVALID_VIDEO',
    details: expect.stringMatching(details),
  });

  it('a video without sound', async () => {
    await expect(probing(await folder.source('silent-video.mp4'))).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: 'no audio stream',
    });
  });

  it.each([
    ['text', 'no media at all, only words'],
    ['an HLS playlist', '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nPATH/ac3.ts\n#EXT-X-ENDLIST\n'],
    ['an ffconcat list', 'ffconcat version 1.0\nfile ac3.ts\n'],
    ['a DASH manifest', '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"></MPD>'],
  ])('%s under the name of a video', async (_, text) => {
    const playable = dirname(await folder.source('ac3.ts'));
    await writeFile(folder.at('liar.mp4'), text.replace('PATH', playable));
    await expect(probing(folder.at('liar.mp4'))).rejects.toMatchObject(invalid(/, not a media file: /));
  });

  it.each([
    ['mp4', '\0\0\0\x18ftypisom\0\0\x02\0isomiso2'],
    ['mpegts', `\x47${'#EXTM3U\n/etc/passwd'.padEnd(187, '\n')}`.repeat(3)],
    ['ogg', `OggS\0${'x'.repeat(100)}`],
    ['wav', 'RIFF\xff\0\0\0WAVE'],
  ])('a %s that is nothing but its first bytes', async (name, bytes) => {
    await writeFile(folder.at('head.mp4'), Buffer.from(bytes, 'latin1'));
    const failure = await probing(folder.at('head.mp4')).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'MediaFailure' });
    expect(JSON.stringify(failure)).not.toContain(folder.path);
    expect(String(failure)).not.toContain(folder.path);
    expect(name).toBeTruthy();
  });

  it('a file of more streams than ffmpeg opens', async () => {
    const traks = Array.from({ length: 1001 }, (_, nth) =>
      trak({ handler: 'soun', format: 'mp4a', id: nth + 1, tables: plainTables([0]) }),
    );
    await writeFile(folder.at('crowd.mp4'), Buffer.concat([FTYP, box('moov', ...traks), mdat(8)]));
    await expect(probing(folder.at('crowd.mp4'))).rejects.toMatchObject(
      invalid(/too many streams: at most 1000/),
    );
  });

  it('a file with more tags than can be read is one that cannot be used', () => {
    const tags = Array.from({ length: 100_000 }, (_, nth) => `"t${nth}":""`).join();
    expect(() => readAnswer(`{"format":{"tags":{${tags}}}}`)).toThrow(
      expect.objectContaining(invalid(/too many tags or chapters/)),
    );
  });

  it('a missing tool is no fault of the file', async () => {
    const broken = { ...tools, launcher: [], ffprobePath: '/nonexistent/ffprobe' };
    await expect(probe(broken, await three(), { signal: noAbort })).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });
});
