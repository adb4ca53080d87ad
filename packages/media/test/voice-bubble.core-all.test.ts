/** A voice note whose bitrate was lowered to fit a bubble uses the room that it has (decisions A3). */
import { stat } from 'node:fs/promises';
import { byRun, rowsOfRun } from 'soundpost-testing/by-run';
import { extract } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it } from 'vitest';
import { VOICE_BUBBLE_BYTES } from '../src/plan.ts';

const folder = mediaFolder();
const NOISE = '0.3*(random(0)*2-1)';
const HUM = '0.001*(random(1)*2-1)';
const CHORD = '0.2*sin(880*PI*t)+0.15*sin(1108.7*PI*t)+0.1*sin(1318.5*PI*t)*sin(3*t)+0.05*(random(2)*2-1)';

const speech = (seconds: number) =>
  `flite=text=${'The sound post is a small piece of wood inside a violin. '.repeat(seconds / 3)},aresample=16000,atrim=end=${seconds}`;
const synthetic = (graph: string, seconds: number) => `aevalsrc='${graph}':s=16000:d=${seconds}`;

/** Where the encoder keeps to its bitrate, stays under it, and goes over it. */
const rows = [
  ['noise and pauses', 150, synthetic(`if(lt(mod(t,10),5),${NOISE},${HUM})`, 150)],
  ['music', 250, synthetic(CHORD, 250)],
  ['noise', 300, synthetic(NOISE, 300)],
  ['music and noise', 150, synthetic(`if(lt(mod(t,20),10),${CHORD},${NOISE})`, 150)],
  ['speech', 250, speech(250)],
] as const;

describe('a voice note of lowered bitrate uses at least 90 % of a bubble', () => {
  it.each(rowsOfRun(rows, 1))('of %s, %i s', async (_, seconds, graph) => {
    const input = await cachedMedia('source.wav', ['-f', 'lavfi', '-i', graph]);
    for (const quality of byRun({ core: ['extreme'], all: ['high', 'extreme'] })) {
      const output = folder.at('note.ogg');
      const made = await extract(input, output, { format: 'voice', quality });
      expect(made.output.durationSeconds).toBeCloseTo(seconds, 0);
      const { size } = await stat(output);
      expect(size).toBeLessThanOrEqual(VOICE_BUBBLE_BYTES);
      if (size >= 0.9 * VOICE_BUBBLE_BYTES) continue;
      // What the quality's own bitrate makes is as good as it gets.
      const bitrate = quality === 'high' ? '24k' : '32k';
      const best = await extract(input, folder.at('best.ogg'), { format: 'voice', bitrate });
      expect(size).toBe(best.output.sizeBytes);
    }
  });
});
