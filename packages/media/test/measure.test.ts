/** What a probe measures is what an extraction of the same source counts (decisions A2a). */
import { extract, noAbort, tools } from 'soundpost-testing/extracting';
import { mediaFolder, type SourceName } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { measureSource } from '../src/measure.ts';
import { probe } from '../src/probe.ts';

const folder = mediaFolder();

/**
 * ADTS and MPEG-TS only guess their length. Where packets do not say how much of the last one is
 * sound, ffmpeg 5 and 7 count it differently: at most a packet, which FLAC has of 96 ms.
 */
it.each<[SourceName, number]>([
  ['adts.aac', 0.001],
  ['ac3.ts', 0.001],
  ['music.wav', 0.001],
  ['aac.mp4', 0.025],
  ['opus.webm', 0.025],
  ['mp3.mp3', 0.03],
  ['flac.mkv', 0.1],
])('%s ends where an extraction of it ends, within %f s', async (name, tolerance) => {
  const input = await folder.source(name);
  const probed = await probe(tools, input, { signal: noAbort });
  const { endSeconds, truncated } = await measureSource({ tools, input, probe: probed, signal: noAbort });
  const { sourceSeconds } = await extract(input, folder.at(`${name}.wav`), { format: 'wav' });
  expect(truncated).toBeNull();
  expect(Math.abs((endSeconds ?? 0) - sourceSeconds)).toBeLessThan(tolerance);
});
