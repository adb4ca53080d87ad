/** How often ffmpeg is run for a copy: of an hour each run takes as long as the copy itself. */
import { expect, it } from 'vitest';
import { extract, tools } from './extracting.ts';
import { decodedSeconds, ffmpeg } from './oracle.ts';
import { mediaFolder } from './sources.ts';

const folder = mediaFolder();

async function runsOfCopy(source: string, format: string) {
  let runs = 0;
  const counting = {
    ...tools,
    watch: () => {
      runs += 1;
      return () => undefined;
    },
  };
  const path = folder.at(`copy.${format}`);
  const { output, sourceSeconds } = await extract(source, path, { format }, { tools: counting });
  expect(output.copied).toBe(true);
  return { runs, output, sourceSeconds, heard: await decodedSeconds(path) };
}

it("an MP4's track is copied by one run, which tells how long it is", async () => {
  const { runs, output, sourceSeconds, heard } = await runsOfCopy(await folder.source('aac.mp4'), 'm4a');
  expect(runs).toBe(1);
  expect(output.durationSeconds).toBe(sourceSeconds);
  expect(output.durationSeconds).toBeCloseTo(heard, 5);
});

it('of timestamps that are rounded the source and the copy are looked at once more each', async () => {
  const mkv = folder.at('aac.mkv');
  await ffmpeg('-v', 'error', '-i', await folder.source('aac.mp4'), '-c', 'copy', mkv);
  const { runs, output, heard } = await runsOfCopy(mkv, 'aac');
  expect(runs).toBe(3);
  expect(output.durationSeconds).toBeCloseTo(heard, 5);
});
