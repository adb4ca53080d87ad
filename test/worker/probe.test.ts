/** A probe on real media: also what nothing can be made of has an answer (decisions A2). */
import { copyFile, readFile, truncate, writeFile } from 'node:fs/promises';
import { mediaFolder } from 'soundpost-testing/sources';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runJob } from './outputs/outputs-run.ts';
import { makeSurroundings, type Surroundings } from './worker-fixture.ts';

const folder = mediaFolder();
let web: VideoServer;
let around: Surroundings;

beforeAll(async () => {
  web = await serveVideos(folder.path);
  around = await makeSurroundings(web.allow);
});
afterAll(async () => {
  expect(around.left()).toEqual([]);
  await around.close();
  await web.close();
});

const probe = (name: string) => runJob(around, web.url(name), { output: { format: 'probe' } });

it('has two steps, and no file', async () => {
  await folder.place('speech.mp4');
  const { reports, result } = probe('speech.mp4');
  expect(await result).toMatchObject({ outputFile: null, voice: null, warnings: [] });
  expect([...new Set(reports.map(({ currentStep }) => currentStep))]).toEqual([
    'downloading_video',
    'analyzing_video',
  ]);
});

it('counts how long it is where the file does not say', async () => {
  await folder.place('adts.aac');
  const made = runJob(around, web.url('adts.aac'), { output: { format: 'wav' } });
  const [probed, { inputFile }] = await Promise.all([probe('adts.aac').result, made.result]);
  // The clock of packets begins a microsecond late (clockZero in command.ts).
  expect(probed.inputFile).toEqual({ ...inputFile, duration: expect.closeTo(inputFile.duration ?? 0, 4) });
});

/** An MP4 whose sound says that it is of another kind (the sample entries of ISO/IEC 14496-12). */
async function renamed(name: string, entry: string): Promise<string> {
  const bytes = await readFile(await folder.source('aac.mp4'));
  bytes.write(entry, bytes.lastIndexOf('mp4a'), 'latin1');
  if (entry === 'mhm1') bytes.write('free', bytes.lastIndexOf('esds'), 'latin1');
  await writeFile(folder.at(name), bytes);
  return name;
}

it.each([
  ['is encrypted, by FairPlay', 'drms', { codec: 'aac', encrypted: true, decodable: false }],
  ['no decoder knows, MPEG-H', 'mhm1', { encrypted: false, decodable: false }],
])('says of sound that it %s, and how long it is', async (_what, entry, track) => {
  const { inputFile } = await probe(await renamed(`${entry}.mp4`, entry)).result;
  expect(inputFile.tracks).toMatchObject([track]);
  expect(inputFile.duration).toBeCloseTo(4, 1);
});

it('warns of a file that was cut off, and takes it', async () => {
  await folder.place('silence.wav');
  await copyFile(folder.at('silence.wav'), folder.at('cut.wav'));
  await truncate(folder.at('cut.wav'), 200_000);
  const { inputFile, warnings } = await probe('cut.wav').result;
  expect(warnings).toEqual([{ code: 'TRUNCATED', message: expect.stringContaining('bytes are missing') }]);
  expect(inputFile.duration).toBeCloseTo(200_000 / 4 / 48_000, 2);
});

it('fails where there is no audio', async () => {
  await folder.place('silent-video.mp4');
  await expect(probe('silent-video.mp4').result).rejects.toMatchObject({
    code: 'EXTRACTION_FAILED',
    details: 'no audio stream',
  });
});
