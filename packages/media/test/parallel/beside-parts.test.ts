/** What a transcriber hears of a long output that is encoded in parts: made by the last part's run, and the same as one run makes. */
// @module-tag quick-ffmpeg
import { readFile } from 'node:fs/promises';
import { OutputRequest, TranscriptRequest } from 'soundpost-contract/output-request';
import { noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSamples } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { type Extraction, extractAudio } from '../../src/extract.ts';
import type { Parallelism } from '../../src/parallel/render.ts';
import { planAny, planOutput } from '../../src/plan.ts';
import { probe } from '../../src/probe.ts';
import { cores } from './cores.ts';

const folder = mediaFolder();
const SECONDS = 26;

const SOUND = "aevalsrc='0.3*sin(440*PI*t)*exp(-3*mod(t,0.5))|0.3*sin(660*PI*t)':s=44100";

async function both(name: string, parallel?: Parallelism): Promise<Extraction> {
  const graph = ['-f', 'lavfi', '-t', String(SECONDS), '-i', SOUND];
  const input = await cachedMedia('chords.mp4', [...graph, '-c:a', 'aac']);
  const probed = await probe(tools, input, { signal: noAbort });
  const words = TranscriptRequest.parse({ format: 'transcript', name: 'words', start: 2 });
  const outputs = [
    { plan: planOutput(OutputRequest.parse({ format: 'mp3' }), probed), path: folder.at(`${name}.mp3`) },
    { plan: planAny(words, probed), path: folder.at(`${name}.wav`) },
  ] as const;
  return extractAudio({
    ...{ tools, input, probe: probed, outputs, signal: noAbort, maxAudioSeconds: 3600 },
    ...(parallel && { parallel }),
  });
}

it('is 16 kHz mono of the same decode', async () => {
  const unjoined: string[] = [];
  const { held, takeIdle } = cores(2);
  const one = await both('one');
  const parts = await both('parts', {
    ...{ takeIdle, lengths: { minPartSeconds: 12, overlapSeconds: 8 } },
    onUnjoined: (why) => unjoined.push(why),
  });
  expect([held, unjoined]).toEqual([{ asked: 2, now: 0 }, []]);
  expect((await readFile(folder.at('parts.wav'))).equals(await readFile(folder.at('one.wav')))).toBe(true);
  const [joined, whole] = await Promise.all(
    ['parts.mp3', 'one.mp3'].map((name) => decodedSamples(folder.at(name), 44_100)),
  );
  expect(joined).toEqual(whole);
  expect({ ...parts.files[1], path: null }).toEqual({ ...one.files[1], path: null });
  expect(parts.sourceSeconds).toBe(one.sourceSeconds);
  expect(parts.files[1]).toMatchObject({
    ...{ codec: 'pcm_s16le', channels: 1, sampleRate: 16_000, startOffsetSeconds: 2 },
    durationSeconds: expect.closeTo(SECONDS - 2, 1),
  });
});
