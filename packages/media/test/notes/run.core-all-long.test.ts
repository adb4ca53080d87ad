// @module-tag quick-ffmpeg
// @module-tag espeak-ng
// @module-tag opus-tools
/** A run of voice notes: each fits a bubble, none begins or ends inside a word, and together they are the whole (decisions C). */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { OutputRequest } from 'soundpost-contract/output-request';
import { byRun, currentRun } from 'soundpost-testing/by-run';
import { extract, extractOne, noAbort, type OneOptions, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSeconds } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { makeTalk, writeWav } from 'soundpost-testing/talk';
import { describe, expect, it } from 'vitest';
import { renderNotes } from '../../src/notes/run.ts';
import { planOutput, planVoiceRendition } from '../../src/plan.ts';
import { probe } from '../../src/probe.ts';
import type { wholeOf } from '../../src/settle.ts';
import { expectForm, libopusDecodes } from '../ogg/opus-tools.ts';

const folder = mediaFolder();
const BUBBLE = 512 * 1024;

async function run(input: string, choice: { split: boolean; trimSilence: boolean }, request: object = {}) {
  const probed = await probe(tools, input, { signal: noAbort });
  const output = OutputRequest.parse({ format: 'mp3', quality: 'low', ...request });
  const options: OneOptions = {
    ...{ tools, input, probe: probed, signal: noAbort, maxAudioSeconds: 7200 },
    ...{ plan: planOutput(output, probed), outputPath: folder.at('run.mp3') },
    voice: { plan: planVoiceRendition(output, probed), path: folder.at('run.ogg'), run: choice },
  };
  const { voice, output: made } = await extractOne(options);
  if (voice === null) throw new Error('no voice message was made');
  return { voice, output: made, notes: await notesOf(folder.at('run.ogg'), voice.parts) };
}

/** The notes as files of their own. */
async function notesOf(path: string, parts: readonly ReturnType<typeof wholeOf>[]): Promise<string[]> {
  const all = await readFile(path);
  return Promise.all(
    parts.map(async ({ offset, sizeBytes }, nth) => {
      const note = folder.at(`part-${nth}.ogg`);
      await writeFile(note, all.subarray(offset, offset + sizeBytes));
      return note;
    }),
  );
}

/** Where only what is to be encoded is asked after. */
const nothing = {
  ...{ path: '', sizeBytes: 0, durationSeconds: 0, sourceSeconds: 0, filledSeconds: 0, gapSeconds: 0 },
  ...{
    heldSeconds: 0,
    packets: 0,
    bitrateKbps: 0,
    copied: false,
    isInForm: true,
    warnings: [],
    channel: null,
  },
};

type Talk = readonly [room: string, noise: number, seconds: number];

const talks = byRun<readonly Talk[]>({
  core: [['a noisy room', 0.004, 240]],
  all: [
    ['a quiet room', 0.0002, 900],
    ['a noisy room', 0.004, 1200],
  ],
  long: [['a noisy room', 0.004, 3600]],
});

describe.each(talks)('a talk in %s', (_room, noise, seconds) => {
  it('becomes notes that each fit a bubble, cut between words', { timeout: 600_000 }, async () => {
    const input = folder.at('talk.wav');
    const { samples, words } = await makeTalk(seconds, noise);
    await writeWav(input, samples);
    const { voice, output, notes } = await run(input, { split: true, trimSilence: false });
    expect(voice.fitsVoiceBubble).toBe(true);
    expect(voice.parts.length).toBeGreaterThan(seconds / 185);
    let at = 0;
    for (const [nth, part] of voice.parts.entries()) {
      expect(part).toMatchObject({ fitsVoiceBubble: true });
      expect(part.sizeBytes).toBeLessThanOrEqual(BUBBLE);
      const note = notes[nth] ?? '';
      await expectForm(note);
      const heard = (await libopusDecodes(note)).length / 2;
      expect(heard).toBe(Math.round(part.durationSeconds * 48_000));
      at += heard / 3;
      if (nth < notes.length - 1) {
        expect(words.filter(({ from, to }) => from < at && at < to)).toEqual([]);
        // Two thirds of what fits at the least.
        expect(part.sizeBytes).toBeGreaterThan(0.6 * BUBBLE);
      }
    }
    expect(at).toBe(samples.length);
    // The run is a file that plays from its first note to its last.
    expect((await stat(folder.at('run.ogg'))).size).toBe(voice.sizeBytes);
    expect((await libopusDecodes(folder.at('run.ogg'))).length / 2).toBe(at * 3);
    expect(output.durationSeconds).toBeCloseTo(seconds, 1);
  });

  it.runIf(currentRun !== 'core')(
    'is in its notes, before they are encoded, to the sample',
    { timeout: 600_000 },
    async () => {
      const input = folder.at('talk.wav');
      const { samples } = await makeTalk(seconds, noise);
      await writeWav(input, samples);
      const pieces: Buffer[] = [];
      const job = { scratch: folder.path, signal: noAbort } as Parameters<typeof renderNotes>[0];
      await renderNotes(
        job,
        input,
        { split: true, trimSilence: false },
        folder.at('pieces.ogg'),
        async ({ path, dataAt }, target, bitrate) => {
          if (bitrate === 'fitting') {
            pieces.push((await readFile(path)).subarray(dataAt));
            await writeFile(target, '');
            return nothing;
          }
          return (await extract(path, target, { format: 'voice', bitrate: '24k' })).output;
        },
      );
      expect(pieces.length).toBeGreaterThan(2);
      expect(Buffer.concat(pieces).equals(Buffer.from(samples.buffer))).toBe(true);
    },
  );
});

describe.runIf(currentRun === 'core')('pauses', () => {
  const spoken = 'flite=text=Hello there\\, this is a sentence.,aresample=16000,apad=pad_dur=3';

  const looped = (graph: string) =>
    cachedMedia('pauses.wav', ['-f', 'lavfi', '-i', graph, '-af', 'aloop=4:size=10000000']);

  it('above 1 s become 0.5 s in the notes, and stay in the file', async () => {
    const input = await looped(spoken);
    const whole = await decodedSeconds(input);
    const { voice, output } = await run(input, { split: false, trimSilence: true });
    expect(output.durationSeconds).toBeCloseTo(whole, 1);
    // Five pauses of 3 s and a little, each shortened by 2.5 s and a little.
    expect(whole - voice.durationSeconds).toBeGreaterThan(5 * 2.4);
    expect(whole - voice.durationSeconds).toBeLessThan(5 * 3);
    await expectForm(folder.at('run.ogg'));
  });

  it('below 1 s are left alone', async () => {
    const input = await looped(spoken.replace('pad_dur=3', 'pad_dur=0.6'));
    const { voice } = await run(input, { split: false, trimSilence: true });
    expect(voice.durationSeconds).toBeCloseTo(await decodedSeconds(input), 2);
  });
});

it.runIf(currentRun === 'core')('what fits one bubble is one note', async () => {
  const { voice } = await run(await folder.source('speech.wav'), { split: true, trimSilence: false });
  expect(voice.parts).toHaveLength(1);
});

it.runIf(currentRun === 'all')(
  'what never pauses is cut at its quietest, and plays on without a hole',
  async () => {
    const hum = "aevalsrc='0.3*sin(440*PI*t)+0.2*(random(0)*2-1)':s=16000:d=400";
    const input = await cachedMedia('hum.wav', ['-f', 'lavfi', '-i', hum]);
    const { voice, notes } = await run(input, { split: true, trimSilence: true }, { normalize: true });
    expect(voice.fitsVoiceBubble).toBe(true);
    const seconds = voice.parts.reduce((sum, part) => sum + part.durationSeconds, 0);
    expect(seconds).toBeCloseTo(400, 3);
    for (const note of notes) await expectForm(note);
  },
);
