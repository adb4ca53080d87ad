/** A transcript of a job (decisions A8), as a caller meets it: real words, a transcriber that comes late, one that refuses, erasing. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebhookEvent } from 'soundpost-contract/webhook-events';
import { Bucket } from 'soundpost-testing/bucket';
import { currentRun } from 'soundpost-testing/by-run';
import { writeWav } from 'soundpost-testing/talk';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeScriptTalk, type ScriptTalk, VOCABULARY } from '../followups/transcripts/script-talk.ts';
import { startSphinx } from '../followups/transcripts/sphinx-server.ts';
import {
  hear,
  sendJson,
  startTranscriber,
  type TranscriberStub,
} from '../followups/transcripts/transcriber-stub.ts';
import { type Answer, type Hook, type Json, TestService, useClips, useService } from './api-fixture.ts';
import { Stream } from './event-stream.ts';

const KEY = 'sk-canary-of-the-transcriber';
const clip = useClips('tone.mp4');

/** Of a transcriber that is not there. */
const away: TranscriberStub['answer'] = (response) => response.destroy();

const wordsOf = (more: Json = {}): Json => ({ name: 'words', format: 'transcript', ...more });

describe.runIf(currentRun === 'core')('A8. Without TRANSCRIBER_URL', () => {
  const service = useService();
  it('a transcript is INVALID_OUTPUT, with the remedy', async () => {
    const source = { type: 'url', url: await service().outside.file('tone.mp4', clip('tone.mp4')) };
    const outputs = [{ name: 'full', format: 'mp3' }, wordsOf()];
    const { status, body } = await service().call('POST', '/v1/extract', { json: { source, outputs } });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      details:
        'outputs[1].format: transcripts are not set up here: remove this output, or ask the operator to set TRANSCRIBER_URL',
    });
  });
});

describe('A8. With a transcriber', { tags: ['flite', 'pocketsphinx'] }, () => {
  let folder: string;
  let talk: ScriptTalk;
  let service: TestService;
  let transcriber: TranscriberStub;
  /** Those of the words that were said. */
  let words: TranscriberStub['answer'];
  let source: Json;

  beforeAll(async () => {
    if (currentRun === 'all') {
      folder = await mkdtemp(join(tmpdir(), 'soundpost-test-transcripts-'));
      talk = await makeScriptTalk(12);
      await writeWav(join(folder, 'talk.wav'), talk.samples);
    }
    transcriber = currentRun === 'all' ? await startSphinx(VOCABULARY) : await startTranscriber();
    words = transcriber.answer;
    service = await TestService.start({
      environment: {
        TRANSCRIBER_URL: transcriber.url,
        TRANSCRIBER_API_KEY: KEY,
        WEBHOOK_SCHEDULE_SECONDS: Array.from({ length: 100 }, (_, nth) => nth / 2).join(','),
      },
    });
    const video = currentRun === 'all' ? join(folder, 'talk.wav') : clip('tone.mp4');
    source = { type: 'url', url: await service.outside.file('talk.wav', video) };
  });
  beforeEach(() => {
    transcriber.answer = away;
  });
  afterAll(async () => {
    await service.close();
    await transcriber.close();
    if (currentRun === 'all') await rm(folder, { recursive: true });
  });

  const extract = (json: Json): Promise<Answer> => service.call('POST', '/v1/extract', { json });
  const download = (jobId: string, name = 'words'): Promise<Answer> =>
    service.call('GET', `/v1/download/${jobId}?name=${name}`);
  const withWords = (more: Json = {}, rest: Json = {}): Json => ({
    source,
    outputs: [{ name: 'full', format: 'mp3' }, wordsOf(more)],
    ...rest,
  });
  const transcribed = (jobId: string): Promise<Json> =>
    until(`the transcript of ${jobId} has ended`, async () => {
      const job = await service.job(jobId);
      return job.transcripts?.every(({ status }: Json) => status !== 'pending') && job;
    });
  const toldOf = (hook: Hook, event: string, count: number): Promise<Json[]> =>
    until(`${count} times ${event}`, () => {
      const told = hook.received.map(({ json }) => json).filter((json) => json.event === event);
      if (told.length < count) return false;
      for (const json of told) expect(WebhookEvent.parse(json)).toEqual(json);
      return told;
    });

  it
    .runIf(currentRun === 'core')
    .each<[Json, string]>([
      [wordsOf({ subtitles: 'ass' }), 'outputs[1].subtitles: '],
      [wordsOf({ language: 'English, please' }), 'outputs[1].language: must be a BCP 47'],
      [wordsOf({ start: 3, end: 2 }), 'outputs[1].end: '],
      ...['timeline', 'quality', 'bitrate', 'channels', 'pixelsPerSecond', 'speed'].map(
        (field): [Json, string] => [
          wordsOf({ [field]: 'x' }),
          `outputs[1].${field}: is not a field of a transcript`,
        ],
      ),
    ])('%j is INVALID_OUTPUT', async (output, details) => {
    const { status, body } = await extract({ source, outputs: [{ name: 'full', format: 'mp3' }, output] });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: 'INVALID_OUTPUT', details: expect.stringContaining(details) });
  });

  it.runIf(currentRun === 'core')('it cannot be the first output', async () => {
    const { body } = await extract({ source, outputs: [wordsOf(), { name: 'full', format: 'mp3' }] });
    expect(body.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      details: expect.stringContaining('outputs[0].format: must be an audio format in the first output'),
    });
  });

  it.runIf(currentRun === 'all')(
    'the words of the talk follow the audio, on the clock of the source, and are told to the webhook',
    async () => {
      transcriber.answer = words;
      const asked = transcriber.asked.length;
      const hook = service.outside.hook('words', () => ({ status: 204 }));
      const start = talk.words[3]?.start ?? 0;
      const outputs = [
        { name: 'full', format: 'mp3' },
        wordsOf({ subtitles: 'json', start: start - 0.1, language: 'en-US' }),
        wordsOf({ name: 'subtitles' }),
      ];
      const jobId = await service.submit({ source, outputs, options: { webhook: hook.url } });
      const job = await transcribed(jobId);
      expect(job).toMatchObject({
        status: 'completed',
        transcripts: [
          { name: 'words', status: 'completed', language: 'en-US', error: null },
          { name: 'subtitles', status: 'completed', language: 'en', error: null },
        ],
      });
      expect(job.outputFiles.map(({ name, format }: Json) => [name, format])).toEqual([
        ['full', 'mp3'],
        ['words', 'transcript'],
        ['subtitles', 'transcript'],
      ]);
      const [, file] = job.outputFiles;
      expect(file).toMatchObject({ filename: 'talk-words.json', subtitles: 'json', language: 'en-US' });

      const text = await service.call('GET', file.url, { key: null });
      expect(text.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        etag: `"${file.sha256}"`,
      });
      const { segments } = JSON.parse(text.bytes.toString());
      const said = talk.words.slice(3);
      expect(segments.map(({ text }: Json) => text)).toEqual(said.map(({ text }) => text));
      for (const [index, word] of said.entries()) {
        expect(Math.abs(segments[index].start - word.start)).toBeLessThan(0.2);
      }
      const vtt = await download(jobId, 'subtitles');
      expect(vtt.headers['content-type']).toBe('text/vtt; charset=utf-8');
      expect(vtt.bytes.toString()).toMatch(/^WEBVTT\n\n00:00:00\.\d{3} --> /);

      expect(transcriber.asked[asked]?.headers.authorization).toBe(`Bearer ${KEY}`);
      const told = await toldOf(hook, 'transcript.updated', 2);
      expect(told).toHaveLength(2);
      expect(told).toContainEqual({
        event: 'transcript.updated',
        jobId,
        timestamp: expect.any(String),
        transcript: job.transcripts[0],
        outputFile: file,
      });
      // What it was made of is gone, the text stays.
      await until('the audio is gone', async () => {
        const files = await readdir(join(service.dataDir, 'files', jobId));
        return files.length === 3;
      });
    },
  );

  it.runIf(currentRun === 'core')(
    'while the transcriber is away the audio is there and the transcript pending; it follows',
    async () => {
      const jobId = await service.submit(withWords());
      const job = await service.ended(jobId);
      expect(job).toMatchObject({
        status: 'completed',
        transcripts: [{ name: 'words', status: 'pending', language: null, error: null }],
      });
      expect(job.outputFiles.map(({ name }: Json) => name)).toEqual(['full']);
      expect((await download(jobId, 'full')).status).toBe(200);
      const early = await download(jobId);
      expect(early.status).toBe(202);
      expect(early.headers['retry-after']).toMatch(/^\d+$/);
      expect(early.body).toMatchObject({ success: false, error: { code: 'JOB_NOT_COMPLETED' } });
      transcriber.answer = hear;
      expect(await transcribed(jobId)).toMatchObject({
        transcripts: [{ status: 'completed', language: 'en' }],
      });
      expect((await download(jobId)).bytes.toString()).toContain(`Part ${transcriber.asked.length}.`);
    },
  );

  it.runIf(currentRun === 'core')(
    'one that refuses the audio is believed: TRANSCRIPT_FAILED, and the job stays completed',
    async () => {
      const asked = transcriber.asked.length;
      transcriber.answer = (response) =>
        sendJson(response, 400, { error: { message: `no such model for ${KEY}` } });
      const hook = service.outside.hook('refused', () => ({ status: 204 }));
      const jobId = await service.submit(withWords({}, { options: { webhook: hook.url } }));
      const error = {
        code: 'TRANSCRIPT_FAILED',
        message: 'the transcript could not be made',
        details: 'the transcriber answered 400',
      };
      expect(await transcribed(jobId)).toMatchObject({
        status: 'completed',
        transcripts: [{ status: 'failed', error }],
      });
      expect(transcriber.asked).toHaveLength(asked + 1);
      const answer = await download(jobId);
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ success: false, error });
      expect(await toldOf(hook, 'transcript.updated', 1)).toMatchObject([
        { transcript: { status: 'failed', error } },
      ]);
      expect(hook.received.map(({ text }) => text).join()).not.toContain(KEY);
    },
  );

  it.runIf(currentRun === 'core')('of a track that there is not it fails alone, and says so', async () => {
    const asked = transcriber.asked.length;
    transcriber.answer = hear;
    const hook = service.outside.hook('no-track', () => ({ status: 204 }));
    const jobId = await service.submit(withWords({ track: 7 }, { options: { webhook: hook.url } }));
    const job = await transcribed(jobId);
    const failed = {
      name: 'words',
      status: 'failed',
      error: { code: 'TRANSCRIPT_FAILED', details: expect.stringContaining('no audio track 7') },
    };
    expect(job).toMatchObject({
      status: 'completed',
      outputFiles: [{ name: 'full' }],
      transcripts: [failed],
    });
    expect(await toldOf(hook, 'transcript.updated', 1)).toMatchObject([{ transcript: failed }]);
    expect(transcriber.asked).toHaveLength(asked);
  });

  it.runIf(currentRun === 'core')(
    'nonsense and outages are tried again, and what was said then counts',
    async () => {
      const answers = [
        (response: Parameters<typeof hear>[0]) => response.end('<html>'),
        (response: Parameters<typeof hear>[0]) => sendJson(response, 503, {}),
        (response: Parameters<typeof hear>[0]) => response.destroy(),
      ];
      let times = 0;
      transcriber.answer = (response, asked) => {
        const answer = answers[times];
        times += 1;
        if (answer === undefined) hear(response, asked, times);
        else answer(response);
      };
      const jobId = await service.submit(withWords({ subtitles: 'txt' }));
      expect(await transcribed(jobId)).toMatchObject({ transcripts: [{ status: 'completed' }] });
      expect((await download(jobId)).bytes.toString()).toBe('Part 4.\n');
    },
  );

  it.runIf(currentRun === 'core')(
    'an erased job has nothing left, and its transcript is not waited for',
    async () => {
      const hook = service.outside.hook('erased', () => ({ status: 204 }));
      const jobId = await service.submit(withWords({}, { options: { webhook: hook.url } }));
      await service.ended(jobId);
      await service.call('DELETE', `/v1/jobs/${jobId}`);
      expect(await service.job(jobId)).toMatchObject({ transcripts: [{ status: 'failed' }] });
      expect((await download(jobId)).status).toBe(410);
      // Its turn has found that out; that of a later one finds the transcriber.
      await toldOf(hook, 'transcript.updated', 1);
      let heard = 0;
      transcriber.answer = (response, asked, nth) => {
        heard += 1;
        hear(response, asked, nth);
      };
      await transcribed(await service.submit(withWords()));
      expect(heard).toBe(1);
      expect(await readdir(join(service.dataDir, 'files', jobId)).catch(() => [])).toEqual([]);
    },
  );

  describe.runIf(currentRun === 'core')('and a destination', () => {
    let nth = 0;
    /** A bucket that takes the audio and the words of a job. */
    function destined(): { bucket: Bucket; destination: { url: string } } {
      nth += 1;
      const bucket = new Bucket();
      const [url = ''] = ['full.mp3', 'words.vtt'].map((name) =>
        service.outside.on(`/bucket-of-words-${nth}/${name}`, bucket.handle),
      );
      return { bucket, destination: { url: url.replace('full.mp3', '{name}.{extension}') } };
    }
    const nameOf = (target: string): string | undefined => target.split('/').at(-1);
    const put = (jobId: string): Promise<Json> =>
      until(`${jobId} is put, or is not`, async () => {
        const job = await service.job(jobId);
        return ['completed', 'failed'].includes(job.destination?.status) && job;
      });

    it('the words are put beside the audio, and told', async () => {
      transcriber.answer = hear;
      const { bucket, destination } = destined();
      const hook = service.outside.hook('words-put', () => ({ status: 204 }));
      const job = await put(
        await service.submit(withWords({}, { destination, options: { webhook: hook.url } })),
      );
      expect(job.destination).toEqual({ ...destination, status: 'completed', error: null });
      const [full, text] = job.outputFiles;
      expect(text).toMatchObject({ name: 'words', destination: { status: 'completed' } });
      const puts = Object.fromEntries(bucket.puts.map((one) => [nameOf(one.target), one]));
      expect(Object.keys(puts).toSorted()).toEqual(['full.mp3', 'words.vtt']);
      expect(puts['full.mp3']).toMatchObject({ isWhole: true, sha256: full.sha256 });
      expect(puts['words.vtt']).toMatchObject({
        isWhole: true,
        sha256: text.sha256,
        sizeBytes: text.size,
        headers: { 'content-type': 'text/vtt; charset=utf-8' },
      });
      const told = await toldOf(hook, 'destination.updated', 2);
      expect(told.map(({ name, destination }) => [name, destination.status]).toSorted()).toEqual([
        ['full', 'completed'],
        ['words', 'completed'],
      ]);
    });

    it('words that could not be made are not put, which is told for them and for the job', async () => {
      transcriber.answer = (response) => sendJson(response, 400, {});
      const { bucket, destination } = destined();
      const hook = service.outside.hook('words-not-put', () => ({ status: 204 }));
      const job = await put(
        await service.submit(withWords({}, { destination, options: { webhook: hook.url } })),
      );
      const message = 'the transcript could not be made';
      expect(job).toMatchObject({
        status: 'completed',
        destination: {
          status: 'failed',
          error: { code: 'DESTINATION_FAILED', message: `words: ${message}` },
        },
        outputFiles: [{ name: 'full' }],
      });
      const told = await toldOf(hook, 'destination.updated', 2);
      expect(told.find(({ name }) => name === 'words')).toMatchObject({
        destination: { status: 'failed', error: { code: 'DESTINATION_FAILED', message } },
      });
      expect(told.find(({ name }) => name === 'full')).toMatchObject({
        destination: { status: 'completed' },
      });
      expect(bucket.puts.map(({ target }) => nameOf(target))).toEqual(['full.mp3']);
    });

    it('each event of both has an id of its own, above those before it', async () => {
      const saying = Promise.withResolvers<void>();
      const taking = Promise.withResolvers<void>();
      transcriber.answer = async (response, asked, nth) => {
        await saying.promise;
        hear(response, asked, nth);
      };
      const { bucket, destination } = destined();
      bucket.answer = async () => {
        await taking.promise;
        return { status: 201 };
      };
      const jobId = await service.submit(withWords({}, { destination }));
      await service.ended(jobId);
      const stream = await Stream.open(jobId, service);
      await until('both are pending', () =>
        stream.events.some(
          ({ data }) => data.transcripts[0].status === 'pending' && data.destination.status === 'pending',
        ),
      );
      saying.resolve();
      await until('the words are there, and are not put', () =>
        stream.events.some(({ data }) => data.outputFiles[1]?.destination.status === 'pending'),
      );
      taking.resolve();
      await stream.ended;
      const ids = stream.events.map(({ id }) => id);
      expect(ids.length).toBeGreaterThan(2);
      expect(ids).toEqual([...new Set(ids)].toSorted((one, other) => one - other));
      expect(ids.at(-1)).toBe(1_000_000);
      for (const seen of ids.slice(0, -1)) {
        const again = await Stream.open(jobId, service, { 'last-event-id': String(seen) });
        await again.ended;
        const rest = again.events.map(({ id }) => id);
        expect([seen, ...rest]).toEqual([...new Set([seen, ...rest])].toSorted((one, other) => one - other));
        expect(again.events.at(-1)?.data).toEqual(await service.job(jobId));
      }
      const seenAll = await Stream.open(jobId, service, { 'last-event-id': String(ids.at(-1)) });
      expect(seenAll.response.statusCode).toBe(204);
    });
  });
});
