// @module-tag opus-tools
/** A voice note has the form that phones make themselves, whatever it was made of; what is put together loses nothing (decisions A3). */

import { stat } from 'node:fs/promises';
import { devNull } from 'node:os';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSeconds } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { packVoiceNote } from '../../src/ogg/voice-form.ts';
import { expectForm, libopusDecodes } from './opus-tools.ts';

const folder = mediaFolder();

const SPEECH = 'The sound post is a small piece of wood inside a violin, and it carries the sound.';
const spoken = (text: string): string => `flite=text=${text.replaceAll(',', '\\,')}`;
const made = (expression: string): string => `aevalsrc='${expression}':s=96000:d=5`;
const sounds = {
  speech: spoken(SPEECH),
  'two words and silence': `${spoken('Hello there.')},apad=whole_dur=5`,
  chords:
    '0.2*sin(880*PI*t)+0.15*sin(1108.7*PI*t)+0.1*sin(1318.5*PI*t)*sin(3*t)+0.05*(random(2)*2-1)*exp(-8*mod(t,0.5))',
  drums:
    '0.8*(random(0)*2-1)*exp(-30*mod(t,0.25))+0.6*sin(2*PI*60*t)*exp(-12*mod(t,0.5))+0.1*sin(2*PI*9000*t)*exp(-40*mod(t,0.125))',
  silence: '0',
  'white noise': '0.5*(random(3)*2-1)',
  'a sweep up to 20 kHz': '0.5*sin(2*PI*(20*t+2000*t*t))',
  'a square wave at full scale': '0.999*(2*gt(sin(2*PI*440*t),0)-1)',
} as const;
const shapes = [
  [48_000, 'stereo'],
  [44_100, 'mono'],
  [8000, 'mono'],
  [16_000, 'mono'],
  [96_000, '7.1'],
  [22_050, 'stereo'],
  [32_000, '5.1'],
  [12_000, 'quad'],
] as const;
const qualities = ['high', 'low', 'extreme', 'medium'] as const;

const rows = Object.entries(sounds).flatMap(([sound, source], nth) =>
  shapes.map(
    ([rate, layout], shape) =>
      [sound, rate, layout, qualities[(nth + shape) % qualities.length] ?? 'high', source] as const,
  ),
);

async function sourceOf(source: string, rate: number, layout: string): Promise<string> {
  const graph = source.startsWith('flite') ? source : made(source);
  const shape = `aformat=channel_layouts=${layout},aresample=${rate}`;
  return cachedMedia('source.wav', ['-f', 'lavfi', '-i', `${graph},${shape}`, '-t', '5.013']);
}

const PHONE = '-ac 1 -ar 16000 -c:a libopus -application voip -compression_level 6'.split(' ');

describe('a voice note', () => {
  it.each(rowsOfRun(rows, 1))('of %s, %i Hz, %s, quality %s', async (_, rate, layout, quality, source) => {
    const input = await sourceOf(source, rate, layout);
    const output = folder.at('note.ogg');
    const { output: said } = await extract(input, output, { format: 'voice', quality });
    await expectForm(output);
    // To the sample: what was put in, at 16 kHz, comes out at 48 kHz.
    const samples = (await libopusDecodes(output)).length / 2;
    expect(samples).toBe(Math.round(said.durationSeconds * 48_000));
    expect(Math.abs(samples / 48_000 - (await decodedSeconds(input)))).toBeLessThan(1 / 8000);
    expect(said).toMatchObject({ sampleRate: 16_000, channels: 1, codec: 'opus' });
  });
});

describe('putting frames together', () => {
  it.each(rowsOfRun(rows, 1))('loses nothing of %s, %i Hz, %s', async (_, rate, layout, quality, source) => {
    const kbps = { low: 12, medium: 16, high: 24, extreme: 40 }[quality];
    const input = await sourceOf(source, rate, layout);
    const before = await cachedMedia('before.ogg', ['-i', input, ...PHONE, '-b:a', `${kbps}k`]);
    const after = folder.at('after.ogg');
    expect(await packVoiceNote(before, after)).toMatchObject({ isNative: true, isUntouched: false });
    await expectForm(after);
    expect((await libopusDecodes(after)).equals(await libopusDecodes(before, folder.at('before.wav')))).toBe(
      true,
    );
    expect((await stat(after)).size).toBeLessThanOrEqual((await stat(before)).size);
    expect(await packVoiceNote(after, devNull)).toMatchObject({ isNative: true, isUntouched: true });
  });

  it.runIf(currentRun === 'core').each([
    ['40 ms a packet', ['-frame_duration', '40']],
    ['full band', ['-ar', '48000', '-application', 'audio']],
    ['two channels', ['-ac', '2']],
    ['frames of 10 ms', ['-frame_duration', '10']],
  ])('is not done to %s', async (_, options) => {
    const input = await folder.source('speech.wav');
    const before = await cachedMedia('other.ogg', ['-i', input, ...PHONE, '-b:a', '24k', ...options]);
    expect(await packVoiceNote(before, devNull)).toMatchObject({ isNative: false, isUntouched: false });
  });
});
