/** A turn of a transcript: what is sent, what is kept between turns and tries, and what is left in the end. */
import { createReadStream } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { wavHead } from 'soundpost-media/notes/pcm-file';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { pacedTools } from 'soundpost-testing/media-tools';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Tried, tryOnce } from '../../src/followups/kind.ts';
import { transcriptKind } from '../../src/followups/kinds/transcript.ts';
import { hearEarly } from '../../src/followups/transcripts/early.ts';
import { type JobRecord, readJobRecord } from '../../src/jobs/job-record.ts';
import { ExtractPayload, ExtractResult, type TranscriptOutcome } from '../../src/jobs/payloads.ts';
import { uploadStorageKey } from '../../src/jobs/uploads/record.ts';
import { runExtraction } from '../../src/worker/extraction.ts';
import {
  hear,
  sendJson,
  startTranscriber,
  type TranscriberStub,
} from '../followups/transcripts/transcriber-stub.ts';
import { resultOf } from '../jobs/job-result.ts';
import { payloadOf } from '../jobs/queue-fixture.ts';
import { logger, makeSurroundings, type Surroundings } from './worker-fixture.ts';

const JOB = 'job_0123456789abcdef';
const AUDIO = `files/${JOB}/one-words.wav`;
const SECONDS = 10;
/** Of 4 s: three parts. */
const PART_BYTES = 4 * 32_000 + 44;
const payload = { version: 1, tenant: 'tenant01', jobId: JOB, name: 'words' } as const;

let around: Surroundings;
let transcriber: TranscriberStub;
let record: JobRecord | undefined;

beforeEach(async () => {
  around = await makeSurroundings();
  transcriber = await startTranscriber();
  const samples = Buffer.alloc(SECONDS * 32_000);
  const wav = join(around.folder, 'words.wav');
  await writeFile(wav, Buffer.concat([wavHead(samples.length), samples]));
  await around.storage.publish(wav, AUDIO);
  record = recordOf();
});
afterEach(async () => {
  expect(around.left()).toEqual([]);
  await transcriber.close();
  await around.close();
});

function recordOf(
  more: Record<string, string> = {},
  audio: { notMade?: string } = {},
  others: readonly object[] = [],
): JobRecord | undefined {
  const transcripts = [
    {
      ...{ name: 'words', storageKey: AUDIO, subtitles: 'txt', filename: 'talk-words.txt' },
      timeline: { startOffset: 30, filledSeconds: 0 },
      ...audio,
    },
    ...others.map((other) => ({
      ...{ filename: 'talk.txt', timeline: { startOffset: 30, filledSeconds: 0 }, ...other },
    })),
  ];
  return readJobRecord(JOB, {
    data: JSON.stringify(payloadOf('tenant01')),
    timestamp: '1',
    spConfirmed: '1',
    processedOn: '2',
    finishedOn: '3',
    returnvalue: JSON.stringify(ExtractResult.parse({ ...resultOf(JOB), transcripts })),
    ...more,
  });
}

function services() {
  return {
    transcriber: { url: transcriber.url, apiKey: undefined, model: 'whisper-1', timeoutMs: 60_000 },
    ...{ storage: around.storage, workspaces: around.workspaces, logger, mostPartBytes: PART_BYTES },
    retryUntilUp: <T>(_signal: AbortSignal, work: () => Promise<T>) => work(),
    outputTtlSeconds: 3600,
    readJob: async () => record,
    followUps: {
      addWebhook: async () => undefined,
      addPut: async () => undefined,
      addDestinationWebhook: async () => undefined,
    },
    ...{ scheduleSeconds: [0], parts: 1, partMs: 60_000, logSeconds: 3600 },
  };
}

function turn(
  more: {
    last?: boolean;
    stopping?: AbortSignal;
    transcriber?: undefined;
    spend?: (tenant: string, seconds: number) => Promise<boolean>;
    mostPartBytes?: number;
  } = {},
): Promise<Tried<TranscriptOutcome>> {
  const { last = false, stopping = new AbortController().signal, ...instead } = more;
  const kind = transcriptKind({ ...services(), ...instead });
  return tryOnce(kind, payload, { number: 1, last }, stopping);
}

const filesLeft = async (): Promise<string[]> =>
  (await readdir(join(around.folder, 'storage/files', JOB))).sort();

it('sends one part a turn, none twice, and writes the text after the last', async () => {
  expect(await turn()).toMatchObject({ outcome: 'step' });
  transcriber.answer = (response) => sendJson(response, 503, {});
  expect(await turn()).toMatchObject({ outcome: 'retry', error: 'the transcriber answered 503' });
  transcriber.answer = hear;
  expect(await turn()).toMatchObject({ outcome: 'step' });
  expect(await turn()).toMatchObject({
    outcome: 'done',
    result: {
      status: 'completed',
      files: [
        {
          ...{
            name: 'words',
            filename: 'talk-words.txt',
            format: 'transcript',
            subtitles: 'txt',
            language: 'en',
          },
          ...{ duration: SECONDS, storageKey: `files/${JOB}/one-words.txt`, size: 24 },
        },
      ],
    },
  });
  // Of ten seconds each is heard once; the second request is the one that failed.
  const seconds = transcriber.asked.map((asked) => asked.seconds);
  expect(seconds[1]).toBe(seconds[2]);
  expect(seconds.toSpliced(1, 1).reduce((sum, each) => sum + each, 0)).toBe(SECONDS);
  for (const each of seconds) expect(each).toBeLessThanOrEqual(4);
  expect(await filesLeft()).toEqual(['one-words.heard.json', 'one-words.txt', 'one-words.wav']);
  await transcriptKind(services()).tidy?.(payload);
  expect(await filesLeft()).toEqual(['one-words.txt']);
});

it('hears a recording once for all that is written of it', async () => {
  record = recordOf({}, {}, [
    { name: 'subtitles', subtitles: 'vtt', storageKey: `files/${JOB}/one-subtitles.wav`, heardAs: 'words' },
    { name: 'again', subtitles: 'txt', storageKey: `files/${JOB}/one-again.wav`, heardAs: 'words' },
    { name: 'other', subtitles: 'txt', storageKey: `files/${JOB}/one-other.wav` },
  ]);
  await turn();
  await turn();
  const { result } = { result: undefined, ...(await turn()) };
  expect(result).toMatchObject({
    status: 'completed',
    files: [
      { name: 'words', subtitles: 'txt', storageKey: `files/${JOB}/one-words.txt` },
      { name: 'subtitles', subtitles: 'vtt', storageKey: `files/${JOB}/one-subtitles.vtt` },
      { name: 'again', subtitles: 'txt', storageKey: `files/${JOB}/one-again.txt` },
    ],
  });
  expect(transcriber.asked).toHaveLength(3);
  expect(transcriber.asked.reduce((sum, { seconds }) => sum + seconds, 0)).toBe(SECONDS);
});

it('spends its length once, before its first part; what the key has not left is not heard', async () => {
  const spent: number[] = [];
  const spend = async (_tenant: string, seconds: number) => spent.push(seconds) > 0;
  expect(await turn({ spend })).toMatchObject({ outcome: 'step' });
  expect(await turn({ spend })).toMatchObject({ outcome: 'step' });
  expect(spent).toEqual([SECONDS]);
  await around.storage.remove(`files/${JOB}/one-words.heard.json`);
  const asked = transcriber.asked.length;
  expect(await turn({ spend: async () => false })).toMatchObject(
    failed(expect.stringContaining('TRANSCRIPT_MINUTES_PER_DAY')),
  );
  expect(transcriber.asked).toHaveLength(asked);
});

const failed = (details: string) => ({
  outcome: 'done',
  result: {
    status: 'failed',
    error: { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made', details },
  },
});

it('a 200 without words is tried again, and its reason is the error of the last try', async () => {
  transcriber.answer = (response) => sendJson(response, 200, { error: { message: 'out of memory' } });
  const error = 'the answer of the transcriber is of no use: neither text nor segments';
  expect(await turn()).toMatchObject({ outcome: 'retry', error });
  expect(await turn({ last: true })).toMatchObject(failed(error));
});

it('a worker that stops gives the turn up, and nothing has happened', async () => {
  const stopping = new AbortController();
  transcriber.answer = () => stopping.abort(new Error('stopping'));
  await expect(turn({ stopping: stopping.signal })).rejects.toThrow('stopping');
  transcriber.answer = hear;
  expect(await turn()).toMatchObject({ outcome: 'step' });
  // The same part was sent again, and it is heard once.
  const [first, second] = transcriber.asked;
  expect(second?.audio.equals(first?.audio ?? Buffer.alloc(0))).toBe(true);
  const heard = await around.storage.read(`files/${JOB}/one-words.heard.json`);
  expect(JSON.parse(await text(heard)).heard).toHaveLength(1);
});

it('where there is no transcriber any more it is waited for, and is the reason in the end', async () => {
  expect(await turn({ transcriber: undefined })).toMatchObject({
    outcome: 'retry',
    error: 'there is no transcriber',
  });
  expect(await turn({ transcriber: undefined, last: true })).toMatchObject(failed('there is no transcriber'));
});

it('of sound that was not made it fails with the reason, and nothing is sent', async () => {
  record = recordOf({}, { notMade: 'no audio track 7' });
  expect(await turn()).toMatchObject(failed('no audio track 7'));
  expect(transcriber.asked).toEqual([]);
});

it.each<[string, () => Promise<unknown> | unknown]>([
  [
    'has expired',
    () => {
      record = undefined;
    },
  ],
  [
    'was erased',
    () => {
      record = recordOf({ spErased: '1' });
    },
  ],
  ['has lost its audio', () => around.storage.remove(AUDIO)],
])('of a job that %s nothing is sent', async (_what, happens) => {
  await happens();
  expect(await turn()).toMatchObject({
    outcome: 'done',
    result: { status: 'failed', error: { details: 'the audio is no longer available' } },
  });
  expect(transcriber.asked).toEqual([]);
});

it('what is erased while its last part is heard leaves nothing', async () => {
  await turn();
  await turn();
  transcriber.answer = (response, asked, nth) => {
    record = recordOf({ spErased: '1' });
    hear(response, asked, nth);
  };
  expect(await turn()).toMatchObject({ outcome: 'done', result: { status: 'failed' } });
  expect(await filesLeft()).not.toContain('one-words.txt');
});

it('of a job that makes nothing else is heard while it is decoded, and goes on from there', async () => {
  const [seconds, upload, mostPartBytes] = [50, 'upl_0123456789abcdef', 10 * 32_000 + 44];
  const source = ['-f', 'lavfi', '-t', String(seconds), '-i', 'anoisesrc=a=0.2:r=16000', '-c:a', 'aac'];
  const clip = await cachedMedia('fifty-seconds.m4a', source);
  await around.storage.write(uploadStorageKey(upload), createReadStream(clip));
  const spent: number[] = [];
  const spend = async (_tenant: string, more: number) => spent.push(more) > 0;
  let step = '';
  const steps: string[] = [];
  transcriber.answer = (...args) => {
    steps.push(step);
    hear(...args);
  };
  const places = { name: 'transcript', perKey: 1, perHost: 1, leaseMs: 1000 } as const;
  const early = {
    ...{ ...services(), mostPartBytes, spend },
    places: { take: async () => true, leave: async () => undefined },
    claimOf: () => ({ jobId: JOB, key: 'tenant01', host: 'transcriber', places }),
  };
  const result = await runExtraction(
    {
      ...{ jobId: JOB, attemptToken: 'two', order: 1, signal: new AbortController().signal },
      report: ({ currentStep }) => {
        step = currentStep;
      },
      takeTurn: async () => undefined,
      payload: ExtractPayload.parse({
        ...{ version: 1, tenant: 'tenant01', source: { type: 'upload', file: upload, name: 'talk.m4a' } },
        outputs: [{ name: 'words', format: 'transcript', subtitles: 'txt' }],
        ...{ options: { priority: 'normal' }, batchId: null, retryOf: null },
      }),
    },
    { ...around.services, tools: pacedTools(10), hearEarly: (recording) => hearEarly(recording, early) },
    around.workspaces,
  );
  // The source is read for five seconds, and a part is there after one and a half.
  expect(steps[0]).toBe('extracting_audio');
  record = recordOf({ returnvalue: JSON.stringify(result) });
  let last = await turn({ spend, mostPartBytes });
  while (last.outcome === 'step') last = await turn({ spend, mostPartBytes });
  expect(last).toMatchObject({ outcome: 'done', result: { status: 'completed' } });
  const parts = transcriber.asked.map((_, nth) => `Part ${nth + 1}.`);
  const written = await text(await around.storage.read(`files/${JOB}/two.txt`));
  expect(written.match(/Part \d+\./g)).toEqual(parts);
  const sum = (all: readonly number[]) => all.reduce((total, each) => total + each, 0);
  expect(sum(transcriber.asked.map((asked) => asked.seconds))).toBeCloseTo(seconds, 0);
  expect(sum(spent)).toBeCloseTo(sum(transcriber.asked.map((asked) => asked.seconds)));
});
