/** What an extraction makes of its request, and what it refuses. */
import { readdir } from 'node:fs/promises';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract, extractSeveral, startedBy } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { realTimeTools } from 'soundpost-testing/media-tools';
import { decodedSamples, decodedSeconds, examine, inspect } from 'soundpost-testing/oracle';
import { processesOver } from 'soundpost-testing/processes';
import { mediaFolder, type SourceName } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';

const folder = mediaFolder();

it.runIf(currentRun === 'core')('the track that is chosen is the one that comes out', async () => {
  /** Each track is a tone of its own, so that the output tells which one it was made of. */
  const tones = [400, 1000, 2500];
  const input = await cachedMedia('tones.mp4', [
    ...tones.flatMap((tone) => ['-f', 'lavfi', '-i', `sine=${tone}:d=1.2:r=48000`]),
    ...[
      '-map',
      '0',
      '-map',
      '1',
      '-map',
      '2',
      '-c:a',
      'aac',
      '-disposition:a:0',
      '0',
      '-disposition:a:1',
      'default',
    ],
  ]);
  const asked = [undefined, 0, 2].map((track) => ({
    path: folder.at(`track-${track}.wav`),
    request: { format: 'wav', track },
  }));
  await extractSeveral(input, asked);
  const heard = await Promise.all(asked.map(({ path }) => toneOf(path)));
  expect(heard.map((tone) => Math.round(tone / 10) * 10)).toEqual([1000, 400, 2500]);
});

/** Zero crossings of a second of a sine. */
async function toneOf(file: string): Promise<number> {
  const samples = (await decodedSamples(file, 48_000)).subarray(4_800, 52_800);
  return samples.filter((sample, at) => at > 0 && (samples[at - 1] ?? 0) < 0 && sample >= 0).length;
}

describe('a trim', () => {
  it.each(
    rowsOfRun(
      [
        ['aac.mp4', 'mp3', 1.234, 2.5],
        ['opus.webm', 'opus', 0.5, 0.75],
        ['ac3.ts', 'm4a', 1, 3],
        ['mp3.avi', 'flac', 2.001, 3.002],
        ['mp3.mp3', 'mp3', 0.1, 3.5],
        ['adts.aac', 'wav', 1.5, 2],
      ],
      1,
    ),
  )('of %s to %s from %f to %f is exact', async (source: SourceName, format, start, end) => {
    const input = await folder.source(source);
    const output = folder.at(`trim-${source}.${format}`);
    const { output: file, sourceSeconds } = await extract(input, output, { format, start, end });
    expect(file.copied).toBe(false);
    expect(Math.abs(sourceSeconds - (await decodedSeconds(input)))).toBeLessThan(0.05);
    expect(Math.abs((await decodedSeconds(output)) - (end - start))).toBeLessThan(0.05);
    expect(file.durationSeconds).toBeCloseTo(end - start, 2);
  });

  it.runIf(currentRun === 'core')(
    'begins at the sample that was asked for, and goes to the end of the source at most',
    async () => {
      const input = await cachedMedia('ramp.wav', ['-f', 'lavfi', '-i', "aevalsrc='t/4':d=3:s=8000"]);
      const parts = [{ start: 1.25, end: 2 }, { start: 2 }, { start: 2, end: 500 }];
      const { files } = await extractSeveral(
        input,
        parts.map((part, nth) => ({ path: folder.at(`${nth}.wav`), request: { format: 'wav', ...part } })),
      );
      const [first = 0] = await decodedSamples(folder.at('0.wav'), 8000);
      expect(first * 4).toBeCloseTo(1.25, 3);
      expect(files.map(({ durationSeconds }) => durationSeconds)).toEqual([0.75, 1, 1]);
    },
  );

  it.runIf(currentRun === 'core')('that begins after the end fails', async () => {
    await expect(
      extract(await folder.source('music.wav'), folder.at('after.mp3'), { format: 'mp3', start: 10 }),
    ).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: expect.stringContaining('no audio between'),
    });
  });
});

describe('a copy', () => {
  it.runIf(currentRun === 'core')(
    'that turns out to be above the bitrate asked for is encoded instead',
    async () => {
      // Matroska says nothing of a track's bitrate.
      const source = await folder.source('music.wav');
      const input = await cachedMedia('rich.webm', ['-i', source, '-c:a', 'libopus', '-b:a', '192k']);
      const { files } = await extractSeveral(input, [
        { path: folder.at('low.opus'), request: { format: 'opus', quality: 'low' } },
        { path: folder.at('extreme.opus'), request: { format: 'opus', bitrate: '256k' } },
      ]);
      expect(files.map(({ copied }) => copied)).toEqual([false, true]);
      expect((await examine(folder.at('low.opus'))).kbps).toBeLessThan(70);
      expect((await examine(folder.at('extreme.opus'))).packetHash).toBe((await examine(input)).packetHash);
    },
  );

  it.each(
    rowsOfRun(
      [
        ['vorbis.webm', 'ogg'],
        ['mp3.mp3', 'mp3'],
        ['adts.aac', 'm4a'],
        ['flac24.mkv', 'flac'],
      ],
      0,
    ),
  )('of %s into %s is as long as the source', async (source, format) => {
    const input = await folder.source(source);
    const output = folder.at(`copy-${source}.${format}`);
    const { output: file } = await extract(input, output, { format });
    const { seconds, kbps } = await examine(output);
    expect(file.copied).toBe(true);
    expect(Math.abs(file.durationSeconds - seconds)).toBeLessThan(0.03);
    expect(Math.abs(seconds - (await decodedSeconds(input)))).toBeLessThan(0.05);
    expect(file.bitrateKbps / kbps).toBeCloseTo(1, 1);
  });

  it.runIf(currentRun === 'core')(
    'of a track that begins late begins at once where its beginning shall be dropped',
    async () => {
      const input = await cachedMedia('late.mkv', [
        ...['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=10:d=6', '-itsoffset', '2'],
        ...['-i', await folder.source('adts.aac'), '-map', '0', '-map', '1', '-c:v', 'mpeg4', '-c:a', 'copy'],
      ]);
      const { output } = await extract(input, folder.at('late.m4a'), { format: 'm4a', timeline: 'audio' });
      const { format } = await inspect(output.path);
      expect(output).toMatchObject({ copied: true, filledSeconds: 0 });
      expect(output.startOffsetSeconds).toBeCloseTo(2, 1);
      expect(Number(format.duration)).toBeCloseTo(await decodedSeconds(output.path), 1);
    },
  );
});

describe.runIf(currentRun === 'core')('limits', () => {
  it('refuse audio that says it is too long, a part of it as well', async () => {
    const part = { format: 'mp3', start: 1, end: 2 };
    await expect(
      extract(await folder.source('music.wav'), folder.at('part.mp3'), part, { maxAudioSeconds: 2 }),
    ).rejects.toMatchObject({ code: 'INVALID_VIDEO', details: 'the audio is longer than 2 s' });
  });

  it('refuse audio that does not say so', async () => {
    const source = await folder.source('adts.aac');
    await expect(
      extract(source, folder.at('long.mp3'), { format: 'mp3' }, { maxAudioSeconds: 2 }),
    ).rejects.toMatchObject({ code: 'INVALID_VIDEO', details: 'the audio is longer than 2 s' });
  });

  it('refuse an output that would be too large', async () => {
    const run = extract(
      await folder.source('mp3.mp3'),
      folder.at('large.wav'),
      { format: 'wav' },
      { maxOutputBytes: 100_000 },
    );
    await expect(run).rejects.toMatchObject({
      code: 'EXTRACTION_FAILED',
      details: 'the output would exceed the limit of 100000 bytes',
    });
  });
});

describe.runIf(currentRun === 'core')('a failure', () => {
  it('leaves nothing behind', async () => {
    const before = await readdir(folder.path);
    await extract(
      await folder.source('music.wav'),
      folder.at('nothing.wav'),
      { format: 'wav' },
      { maxOutputBytes: 5000 },
    ).catch(() => {});
    await extract(await folder.source('music.wav'), folder.at('nothing.mp3'), {
      format: 'mp3',
      start: 100,
      normalize: true,
    }).catch(() => {});
    expect(await readdir(folder.path)).toEqual(before);
  });

  it('of the disk is no fault of the input', async () => {
    const fullDisk = startedBy([
      '/bin/sh',
      '-c',
      'echo "av_interleaved_write_frame(): No space left on device" >&2; exit 1',
    ]);
    const run = extract(
      await folder.source('music.wav'),
      folder.at('full.wav'),
      { format: 'wav' },
      { tools: fullDisk },
    );
    await expect(run).rejects.toMatchObject({
      name: 'ToolFailure',
      stderr: expect.stringContaining('No space left'),
    });
  });

  it('is an abort: ffmpeg goes and so do the files', async () => {
    await folder.place('music.wav');
    const abort = new AbortController();
    const reason = new Error('cancelled');
    const run = extract(
      folder.at('music.wav'),
      folder.at('given-up.aac'),
      { format: 'aac' },
      { tools: realTimeTools, signal: abort.signal, onProgress: () => abort.abort(reason) },
    );
    await expect(run).rejects.toBe(reason);
    const left = await readdir(folder.path);
    expect(left.filter((name) => name.startsWith('given-up') || name.startsWith('extract-'))).toEqual([]);
    expect(processesOver(folder.path)).toEqual([]);
  });
});
