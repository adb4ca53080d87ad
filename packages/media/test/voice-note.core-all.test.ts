// @module-tag quick-ffmpeg

import { access, readFile, writeFile } from 'node:fs/promises';
import { devNull } from 'node:os';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { makeNativeNote } from 'soundpost-testing/native-note';
import { decodedSeconds, examine } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { packVoiceNote } from '../src/ogg/voice-form.ts';
import { prepareVoiceNote } from '../src/voice-note.ts';

const folder = mediaFolder();
const prepare = (input: string, output: string) =>
  prepareVoiceNote({ tools, input, output, workspace: folder.path, signal: noAbort });

describe('a voice note', () => {
  it.each(rowsOfRun(['surround.mkv', 'speech.wav', 'mp3.mp3', 'aac.mp4', 'stereo.opus', 'opus.webm'], 1))(
    'is made of %s: Ogg Opus, mono, as phones make it',
    async (source) => {
      const input = await folder.source(source);
      const output = folder.at(`${source}.ogg`);
      const note = await prepare(input, output);
      const { format, audio, tags, kbps } = await examine(output);
      expect(note).toMatchObject({ path: output, passedThrough: false, seconds: 4 });
      expect(format.format_name).toBe('ogg');
      expect(audio).toMatchObject({ codec_name: 'opus', channels: 1, sample_rate: '48000' });
      expect(tags.title).toBeUndefined();
      expect(await packVoiceNote(output, devNull)).toMatchObject({ isUntouched: true });
      expect(Math.abs(note.durationSeconds - (await decodedSeconds(input)))).toBeLessThan(0.05);
      expect(kbps).toBeLessThan(45);
    },
  );

  it.runIf(currentRun === 'core')('that is one already passes through, byte for byte', async () => {
    const input = folder.at('native.ogg');
    await makeNativeNote(await folder.source('speech.wav'), input);
    const before = await readFile(input);
    const note = await prepare(input, folder.at('unused.ogg'));
    expect(note).toMatchObject({ path: input, passedThrough: true });
    expect(await readFile(note.path)).toEqual(before);
    expect(Math.abs(note.durationSeconds - (await decodedSeconds(input)))).toBeLessThan(0.01);
  });

  it.runIf(currentRun === 'core')('of less than half a second says 1, and has 64 bars', async () => {
    const blip = await cachedMedia('blip.wav', ['-f', 'lavfi', '-i', 'sine=d=0.05']);
    const note = await prepare(blip, folder.at('blip.ogg'));
    expect(note.seconds).toBe(1);
    expect(note.durationSeconds).toBeCloseTo(0.05, 2);
    expect(note.waveform).toHaveLength(64);
  });

  it.runIf(currentRun === 'core').each([
    ['text', Buffer.from('no audio')],
    ['nothing', Buffer.alloc(0)],
    ['a damaged note', Buffer.from(`OggS\0\x02${'\0'.repeat(60)}OpusHead`, 'latin1')],
  ])('is not made of %s', async (_, bytes) => {
    await writeFile(folder.at('junk.ogg'), bytes);
    await expect(prepare(folder.at('junk.ogg'), folder.at('junk.out'))).rejects.toMatchObject({
      name: 'MediaFailure',
    });
  });

  it.runIf(currentRun === 'core')(
    'of so few samples that none comes out is refused, and leaves nothing behind',
    async () => {
      const one = ['-f', 'lavfi', '-i', 'sine=r=48000', '-frames:a', '1', '-af', 'atrim=end_sample=9'];
      const input = await cachedMedia('blink.wav', one);
      await expect(prepare(input, folder.at('blink.ogg'))).rejects.toMatchObject({
        code: 'EXTRACTION_FAILED',
      });
      await expect(access(folder.at('blink.ogg'))).rejects.toMatchObject({ code: 'ENOENT' });
    },
  );
});

describe('a waveform', () => {
  it.runIf(currentRun === 'core')('has 64 bars that follow the loudness', async () => {
    // A quarter each: silent, half as loud, loudest, half as loud.
    const steps = "aevalsrc='0.8*sin(2000*t)*if(lt(t,1),0,if(between(t,2,3),1,0.5))':d=4:s=48000";
    const input = await cachedMedia('steps.wav', ['-f', 'lavfi', '-i', steps]);
    const { waveform } = await prepare(input, folder.at('steps.ogg'));
    expect(waveform).toHaveLength(64);
    const quarter = (place: number) => [...waveform.subarray(place * 16 + 2, place * 16 + 14)];
    expect(Math.max(...quarter(0))).toBeLessThanOrEqual(2);
    for (const bar of quarter(1)) expect(Math.abs(bar - 50)).toBeLessThan(8);
    for (const bar of quarter(2)) expect(bar).toBeGreaterThan(80);
    for (const bar of quarter(3)) expect(Math.abs(bar - 50)).toBeLessThan(8);
    expect(Math.max(...waveform)).toBe(100);
  });

  it.runIf(currentRun === 'core')('of silence is flat', async () => {
    const silence = await prepare(await folder.source('silence.wav'), folder.at('silence.ogg'));
    expect([...silence.waveform]).toEqual(Array.from({ length: 64 }, () => 0));
  });
});
