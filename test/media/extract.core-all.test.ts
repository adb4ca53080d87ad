/** What an extraction makes of its request, and what it refuses. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { currentRun, rowsOfRun } from '../by-run.ts';
import { extract, startedBy } from './extracting.ts';
import { decodedSamples, decodedSeconds, ffmpeg, inspect, packetHash, packetKbps } from './oracle.ts';
import { mediaFolder, type SourceName } from './sources.ts';

const folder = mediaFolder();

describe.runIf(currentRun === 'core')('a track', () => {
  /** Each track is a tone of its own, so that the output tells which one it was made of. */
  const tones = [400, 1000, 2500];

  beforeAll(async () => {
    const inputs = tones.flatMap((tone) => ['-f', 'lavfi', '-i', `sine=${tone}:d=2:r=48000`]);
    await ffmpeg(
      ...['-v', 'error', ...inputs, '-map', '0', '-map', '1', '-map', '2', '-c:a', 'aac'],
      ...['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=ger', '-disposition:a:0', '0'],
      ...['-disposition:a:1', 'default', folder.at('tones.mp4')],
    );
  });

  /** Zero crossings of a sine. */
  async function toneOf(file: string): Promise<number> {
    const samples = (await decodedSamples(file, 48_000)).subarray(24_000, 72_000);
    return samples.filter((sample, at) => at > 0 && (samples[at - 1] ?? 0) < 0 && sample >= 0).length;
  }

  it.each([
    [undefined, 1],
    [0, 0],
    [2, 2],
    ['en', 0],
    ['deu', 1],
  ])('chosen by %s is track %i', async (track, expected) => {
    const output = folder.at(`track-${track}.mp3`);
    await extract(folder.at('tones.mp4'), output, { format: 'mp3', track });
    expect(Math.round((await toneOf(output)) / 10) * 10).toBe(tones[expected]);
  });
});

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
      3,
    ),
  )('of %s to %s from %f to %f is exact', async (source: SourceName, format, start, end) => {
    const input = await folder.source(source);
    const output = folder.at(`trim-${source}.${format}`);
    const { output: file, sourceSeconds } = await extract(input, output, { format, start, end });
    expect(file.copied).toBe(false);
    const whole = await extract(input, folder.at(`whole-${source}.${format}`), { format });
    expect(Math.abs(sourceSeconds - whole.sourceSeconds)).toBeLessThan(0.05);
    expect(Math.abs((await decodedSeconds(output)) - (end - start))).toBeLessThan(0.05);
    expect(file.durationSeconds).toBeCloseTo(end - start, 2);
  });

  it.runIf(currentRun === 'core')('begins at the sample that was asked for', async () => {
    const input = folder.at('ramp.wav');
    await ffmpeg('-v', 'error', '-f', 'lavfi', '-i', "aevalsrc='t/4':d=3:s=8000", input);
    await extract(input, folder.at('ramp.flac'), { format: 'flac', start: 1.25, end: 2 });
    const [first = 0] = await decodedSamples(folder.at('ramp.flac'), 8000);
    expect(first * 4).toBeCloseTo(1.25, 3);
  });

  it.runIf(currentRun === 'core')(
    'without an end goes to the end, and one past the end stops there',
    async () => {
      const input = await folder.source('music.wav');
      const open = await extract(input, folder.at('open.flac'), { format: 'flac', start: 3 });
      const past = await extract(input, folder.at('past.flac'), { format: 'flac', start: 3, end: 500 });
      expect(open.output.durationSeconds).toBeCloseTo(1, 2);
      expect(past.output.durationSeconds).toBeCloseTo(1, 2);
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
      const input = folder.at('rich.webm');
      await ffmpeg(
        '-v',
        'error',
        '-i',
        await folder.source('music.wav'),
        '-c:a',
        'libopus',
        '-b:a',
        '192k',
        input,
      );
      const low = await extract(input, folder.at('low.opus'), { format: 'opus', quality: 'low' });
      const extreme = await extract(input, folder.at('extreme.opus'), { format: 'opus', bitrate: '256k' });
      expect(low.output.copied).toBe(false);
      expect(await packetKbps(low.output.path)).toBeLessThan(70);
      expect(extreme.output.copied).toBe(true);
      expect(await packetHash(extreme.output.path)).toBe(await packetHash(input));
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
      2,
    ),
  )('of %s into %s is as long as the source', async (source, format) => {
    const input = await folder.source(source);
    const output = folder.at(`copy-${source}.${format}`);
    const { output: file } = await extract(input, output, { format });
    const seconds = await decodedSeconds(output);
    expect(file.copied).toBe(true);
    expect(Math.abs(file.durationSeconds - seconds)).toBeLessThan(0.03);
    expect(Math.abs(seconds - (await decodedSeconds(input)))).toBeLessThan(0.05);
    expect(file.bitrateKbps / (await packetKbps(output))).toBeCloseTo(1, 1);
  });

  it.runIf(currentRun === 'core')(
    'of a track that begins late begins at once where its beginning shall be dropped',
    async () => {
      const input = folder.at('late.mkv');
      await ffmpeg(
        ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=10:d=6', '-itsoffset', '2'],
        ...[
          '-i',
          await folder.source('adts.aac'),
          '-map',
          '0',
          '-map',
          '1',
          '-c:v',
          'mpeg4',
          '-c:a',
          'copy',
          input,
        ],
      );
      const { output } = await extract(input, folder.at('late.m4a'), { format: 'm4a', timeline: 'audio' });
      const { format } = await inspect(output.path);
      expect(output).toMatchObject({ copied: true, filledSeconds: 0 });
      expect(output.startOffsetSeconds).toBeCloseTo(2, 1);
      expect(Number(format.duration)).toBeCloseTo(await decodedSeconds(output.path), 1);
    },
  );
});

describe.runIf(currentRun === 'core')('limits', () => {
  it('refuse audio that says it is too long, before reading it', async () => {
    const run = extract(
      await folder.source('music.wav'),
      folder.at('long.mp3'),
      { format: 'mp3' },
      { maxAudioSeconds: 2 },
    );
    await expect(run).rejects.toMatchObject({
      code: 'INVALID_VIDEO',
      details: 'the audio is longer than 2 s',
    });
  });

  it('refuse audio that does not say so', async () => {
    for (const format of ['mp3', 'aac']) {
      const run = extract(
        await folder.source('adts.aac'),
        folder.at('long.out'),
        { format },
        { maxAudioSeconds: 2 },
      );
      await expect(run).rejects.toMatchObject({
        code: 'INVALID_VIDEO',
        details: 'the audio is longer than 2 s',
      });
    }
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
      details: 'the output would be larger than 100000 bytes',
    });
  });

  it("are the source's: a part of what is too long is refused as well", async () => {
    const run = extract(
      await folder.source('music.wav'),
      folder.at('part.mp3'),
      { format: 'mp3', start: 1, end: 2 },
      { maxAudioSeconds: 2 },
    );
    await expect(run).rejects.toMatchObject({ code: 'INVALID_VIDEO' });
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
    expect(
      (await readdir(folder.path)).filter((name) => !before.includes(name) && name !== 'music.wav'),
    ).toEqual([]);
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
    const input = folder.at('hour.wav');
    await ffmpeg('-v', 'error', '-f', 'lavfi', '-i', 'anoisesrc=d=1200:r=8000', input);
    const abort = new AbortController();
    const reason = new Error('cancelled');
    const run = extract(
      input,
      folder.at('hour.aac'),
      { format: 'aac', sampleRate: 48000 },
      {
        signal: abort.signal,
        onProgress: () => abort.abort(reason),
      },
    );
    await expect(run).rejects.toBe(reason);
    expect(
      (await readdir(folder.path)).filter(
        (name) => name.startsWith('hour.aac') || name.startsWith('extract-'),
      ),
    ).toEqual([]);
    const ps = spawn('pgrep', ['-f', folder.at('hour.wav')], { stdio: ['ignore', 'pipe', 'ignore'] });
    expect((await once(ps, 'exit'))[0]).toBe(1);
  });
});

describe.runIf(currentRun === 'core')('on the way', () => {
  it('tells how far it is, from little to all, never back', async () => {
    const fractions: number[] = [];
    const steps: string[] = [];
    await extract(
      await folder.source('clipping.wav'),
      folder.at('progress.mp3'),
      { format: 'mp3', normalize: true },
      {
        onProgress: (fraction) => fractions.push(fraction),
        onStep: (step) => steps.push(step),
      },
    );
    expect(steps).toEqual(['extracting_audio', 'normalizing_audio']);
    expect(fractions.at(-1)).toBe(1);
    expect(fractions).toEqual(fractions.toSorted((one, other) => one - other));
    expect(fractions.length).toBeGreaterThan(3);
  });

  it('stays in one step where nothing is normalised', async () => {
    const steps: string[] = [];
    await extract(
      await folder.source('music.wav'),
      folder.at('step.mp3'),
      { format: 'mp3' },
      { onStep: (step) => steps.push(step) },
    );
    expect(steps).toEqual(['extracting_audio']);
  });
});
