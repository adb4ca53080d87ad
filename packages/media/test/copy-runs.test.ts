/** How often ffmpeg is run for a copy: of an hour each run takes as long as the copy itself. */
// @module-tag quick-ffmpeg

import { OutputRequest } from 'soundpost-contract/output-request';
import { extract, noAbort, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { decodedSeconds } from 'soundpost-testing/oracle';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { extractAudio } from '../src/extract.ts';
import { planOutput } from '../src/plan.ts';
import { probe } from '../src/probe.ts';

const folder = mediaFolder();

/** The tools, and how often they were run. */
function counted() {
  let runs = 0;
  const watch = () => {
    runs += 1;
    return () => undefined;
  };
  return { counting: { ...tools, watch }, runs: () => runs };
}

async function runsOfCopy(source: string, format: string) {
  const { counting, runs } = counted();
  const path = folder.at(`copy.${format}`);
  const { output, sourceSeconds } = await extract(source, path, { format }, { tools: counting });
  expect(output.copied).toBe(true);
  return { runs: runs(), output, sourceSeconds, heard: await decodedSeconds(path) };
}

const matroska = async () => cachedMedia('aac.mkv', ['-i', await folder.source('aac.mp4'), '-c', 'copy']);

it("an MP4's track is copied by one run, which tells how long it is, and listens to it if it is short", async () => {
  const { runs, output, sourceSeconds, heard } = await runsOfCopy(await folder.source('aac.mp4'), 'm4a');
  expect(runs).toBe(1);
  expect(output.durationSeconds).toBe(sourceSeconds);
  // ffmpeg 7 counts what an edit list leaves of the last packet, which others play whole.
  expect(Math.abs(output.durationSeconds - heard)).toBeLessThan(1024 / 48_000);
});

it('of timestamps that are rounded the source and the copy are measured by one more run each', async () => {
  const { runs, output, heard } = await runsOfCopy(await matroska(), 'aac');
  expect(runs).toBe(4);
  expect(output.durationSeconds).toBeCloseTo(heard, 5);
});

it('of several copies of one track the source is looked at once', async () => {
  const input = await matroska();
  const probed = await probe(tools, input, { signal: noAbort });
  const copies = (count: number) => {
    const { counting, runs } = counted();
    const outputs = Array.from({ length: count }, (_, nth) => ({
      plan: planOutput(OutputRequest.parse({ format: 'aac' }), probed),
      path: folder.at(`copy-${nth}.aac`),
    }));
    const [first, ...others] = outputs;
    if (first === undefined) throw new Error('one at least');
    return extractAudio({
      ...{ tools: counting, input, probe: probed, outputs: [first, ...others], signal: noAbort },
      maxAudioSeconds: 3600,
    }).then(({ files }) => ({ runs: runs(), copied: files.map((file) => file.copied) }));
  };
  // The copying of all, the source, and each copy, which is listened to as well.
  expect(await copies(3)).toEqual({ runs: 8, copied: [true, true, true] });
});
