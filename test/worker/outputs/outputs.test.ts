/** Several outputs of one job (decisions A8): each is what a job of its own would make, of one fetch. */
// @module-tag quick-ffmpeg
import { copyFile } from 'node:fs/promises';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { mediaFolder } from 'soundpost-testing/sources';
import { serveVideos, type VideoServer } from 'soundpost-testing/video-server';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { filesOf, type StoredFile } from '../../../src/jobs/payloads.ts';
import { Semaphore } from '../../../src/jobs/semaphore.ts';
import { madeOf } from '../../jobs/job-result.ts';
import { makeSurroundings, type Surroundings } from '../worker-fixture.ts';
import { contentOf, runJob } from './outputs-run.ts';

const folder = mediaFolder();
let web: VideoServer;
let around: Surroundings;
/** With no idle core: one run of ffmpeg makes all of it. */
let oneCore: Surroundings;

const TONE = (hertz: number) => ['-f', 'lavfi', '-i', `sine=f=${hertz}:r=44100:d=6`];

beforeAll(async () => {
  web = await serveVideos(folder.path);
  around = await makeSurroundings(web.allow);
  oneCore = { ...around, services: { ...around.services, encoding: new Semaphore(1) } };
  await folder.place('speech.mp4');
  // The second track begins 1.5 s late.
  const two = [...TONE(440), '-itsoffset', '1.5', ...TONE(880), '-map', '0:a', '-map', '1:a'];
  const made = await cachedMedia('two.mkv', [...two, '-c:a', 'aac', '-metadata:s:a:1', 'language=ger']);
  await copyFile(made, folder.at('two.mkv'));
});
afterAll(async () => {
  await around.close();
  await web.close();
});
afterEach(() => {
  expect(around.left()).toEqual([]);
});

/** What does not depend on which job it was. */
const essence = ({ name: _name, storageKey: _key, expiresAt: _at, filename: _file, ...rest }: StoredFile) =>
  rest;

async function alone(source: string, { name: _, ...output }: Readonly<Record<string, unknown>>) {
  const { result } = runJob(around, web.url(source), { output });
  return essence(madeOf(await result).outputFile);
}

async function waveformAlone(source: string, output: object) {
  const outputs = [{ name: 'first', format: 'wav' }, output];
  const { result } = runJob(around, web.url(source), { outputs });
  const [, waveform] = filesOf(await result);
  return waveform && essence(waveform);
}

type Named = Readonly<Record<string, unknown>> & { readonly format: string };

const jobs: readonly (readonly [what: string, source: string, outputs: readonly Named[]])[] = [
  [
    'mp3, a copy and a waveform',
    'speech.mp4',
    [
      { name: 'full', format: 'mp3' },
      { name: 'as-is', format: 'm4a' },
      { name: 'peaks', format: 'waveform', pixelsPerSecond: 50 },
    ],
  ],
  [
    'different parts of one track',
    'two.mkv',
    [
      { name: 'whole', format: 'mp3', track: 1 },
      { name: 'middle', format: 'opus', track: 1, start: 1, end: 4.5 },
      { name: 'closed', format: 'flac', track: 1, timeline: 'audio' },
    ],
  ],
  [
    'two tracks',
    'two.mkv',
    [
      { name: 'en', format: 'mp3', track: 0 },
      { name: 'de', format: 'mp3', track: 'de' },
      { name: 'de-peaks', format: 'waveform', track: 'de', start: 2 },
    ],
  ],
  [
    'a levelled output beside plain ones',
    'speech.mp4',
    [
      { name: 'plain', format: 'mp3' },
      { name: 'quiet', format: 'opus', loudness: -24 },
    ],
  ],
];

describe.each(jobs)('%s', (_what, source, outputs) => {
  it('are each the file that a job of its own would make, of one fetch', async () => {
    const before = web.requests.length;
    const { result } = runJob(around, web.url(source), { outputs });
    const files = filesOf(await result);
    expect(web.requests.slice(before)).toEqual([source]);
    // On one core, from one decode, they are the same.
    const onOne = filesOf(await runJob(oneCore, web.url(source), { outputs }).result);
    expect(onOne.map(essence)).toEqual(files.map(essence));
    expect(files.map(({ name }) => name)).toEqual(outputs.map(({ name }) => name));
    for (const [nth, output] of outputs.entries()) {
      const made = files[nth];
      const single =
        output.format === 'waveform' ? await waveformAlone(source, output) : await alone(source, output);
      expect(made && essence(made), String(output.name)).toEqual(single);
    }
  });
});

describe('the files of several outputs', () => {
  const outputs = [
    { name: 'full', format: 'mp3' },
    { name: 'peaks', format: 'waveform' },
  ];

  it('have names of their own, under keys of their own', async () => {
    const { result } = runJob(around, web.url('speech.mp4'), { outputs }, { filename: 'talk' });
    const [first, second] = filesOf(await result);
    expect(first).toMatchObject({ name: 'full', filename: 'talk-full.mp3' });
    expect(second).toMatchObject({ name: 'peaks', format: 'waveform', filename: 'talk-peaks.json' });
    expect(first?.storageKey).toMatch(/thisattempt\.mp3$/);
    expect(second?.storageKey).toMatch(/thisattempt-peaks\.json$/);
    for (const file of [first, second]) {
      expect(await around.storage.stat(file?.storageKey ?? '')).toMatchObject({ sizeBytes: file?.size });
    }
  });

  it('of a list with one output is called as that of an output alone', async () => {
    const { result } = runJob(around, web.url('speech.mp4'), {
      outputs: [{ name: 'only', format: 'mp3' }],
    });
    const { outputFile, otherFiles } = await result;
    expect(outputFile).toMatchObject({ name: 'only', filename: 'speech.mp3' });
    expect(otherFiles).toBeUndefined();
  });

  it('come with a voice message of the first', async () => {
    const options = { voiceMessage: { instance: 'support', number: '12025550123' } };
    const { result } = runJob(
      around,
      web.url('two.mkv'),
      {
        outputs: [
          { name: 'de', format: 'mp3', track: 1, start: 2 },
          { name: 'en', format: 'opus', track: 0 },
          { name: 'peaks', format: 'waveform', track: 0 },
        ],
      },
      options,
    );
    const made = await result;
    const single = await runJob(
      around,
      web.url('two.mkv'),
      { output: { format: 'mp3', track: 1, start: 2 } },
      options,
    ).result;
    expect(filesOf(made)).toHaveLength(3);
    expect(made.voice?.fitsVoiceBubble).toBe(true);
    expect(await contentOf(around, made.voice?.storageKey ?? '')).toEqual(
      await contentOf(around, single.voice?.storageKey ?? ''),
    );
  });

  it('are none when one of them fails', async () => {
    const { result } = runJob(around, web.url('speech.mp4'), {
      outputs: [
        { name: 'full', format: 'mp3' },
        { name: 'late', format: 'mp3', start: 3600 },
      ],
    });
    await expect(result).rejects.toMatchObject({ code: 'EXTRACTION_FAILED' });
  });

  it.each([
    ['with idle cores', () => around],
    ['on one core', () => oneCore],
  ])('are there though transcripts among them cannot be made, %s', async (_how, on) => {
    const outputs = [
      { name: 'full', format: 'mp3' },
      { name: 'no-track', format: 'transcript', track: 7 },
      { name: 'words', format: 'transcript', end: 1 },
      { name: 'late', format: 'transcript', start: 3600 },
      { name: 'peaks', format: 'waveform' },
    ];
    const { result } = runJob(on(), web.url('two.mkv'), { outputs });
    const made = await result;
    expect(filesOf(made).map(({ name }) => name)).toEqual(['full', 'peaks']);
    expect(made.transcripts?.map(({ name, notMade }) => [name, notMade])).toEqual([
      ['no-track', expect.stringContaining('no audio track 7')],
      ['words', undefined],
      ['late', 'there is no audio between the requested start and end'],
    ]);
  });

  it('make the audio of transcripts once for all that are heard alike', async () => {
    const transcript = (name: string, more: object = {}) => ({ name, format: 'transcript', ...more });
    const { result } = runJob(around, web.url('two.mkv'), {
      outputs: [
        { name: 'full', format: 'mp3' },
        transcript('vtt', { end: 1 }),
        transcript('srt', { end: 1, subtitles: 'srt' }),
        transcript('by-number', { end: 1, track: 0 }),
        transcript('english', { end: 1, language: 'en' }),
        transcript('whole'),
        transcript('json', { end: 1, subtitles: 'json' }),
        transcript('none', { track: 7 }),
        transcript('none-srt', { track: 7, subtitles: 'srt' }),
      ],
    });
    const { transcripts = [] } = await result;
    expect(transcripts.map(({ name, heardAs }) => [name, heardAs])).toEqual([
      ['vtt', undefined],
      ['srt', 'vtt'],
      ['by-number', 'vtt'],
      ['english', undefined],
      ['whole', undefined],
      ['json', 'vtt'],
      ['none', undefined],
      ['none-srt', 'none'],
    ]);
    for (const { storageKey, heardAs, notMade, name } of transcripts) {
      expect([name, notMade !== undefined]).toEqual([name, name.startsWith('none')]);
      const isThere = await contentOf(around, storageKey).then(
        () => true,
        () => false,
      );
      expect([name, isThere]).toEqual([name, heardAs === undefined && notMade === undefined]);
    }
  });

  it('count as one progress that never goes back', async () => {
    const { reports, result } = runJob(around, web.url('speech.mp4'), {
      outputs: [
        { name: 'plain', format: 'mp3' },
        { name: 'loud', format: 'mp3', normalize: true },
      ],
    });
    await result;
    const progress = reports.map((report) => report.progress);
    expect(progress).toEqual(progress.toSorted((one, other) => one - other));
    expect([...new Set(reports.map(({ currentStep }) => currentStep))]).toEqual([
      'downloading_video',
      'analyzing_video',
      'extracting_audio',
      'normalizing_audio',
      'finalizing',
    ]);
  });
});
