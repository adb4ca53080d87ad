/** A transcript of a job (decisions A8), as a caller meets it: real words, a transcriber that comes late, one that refuses, erasing. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeWav } from '../media/notes/talk.ts';
import { freePort } from '../ports.ts';
import { makeScriptTalk, type ScriptTalk, VOCABULARY } from '../transcripts/script-talk.ts';
import { startSphinx } from '../transcripts/sphinx-server.ts';
import { hear, sendJson, startTranscriber, type TranscriberStub } from '../transcripts/transcriber-stub.ts';
import { until } from '../until.ts';
import { type Answer, type Json, TestService, useClips, useService } from './api-fixture.ts';

const KEY = 'sk-canary-of-the-transcriber';
const clip = useClips('tone.mp4');

const wordsOf = (more: Json = {}): Json => ({ name: 'words', format: 'transcript', ...more });

describe('A8. Without TRANSCRIBER_URL', () => {
  const service = useService();
  it('a transcript is INVALID_OUTPUT, with the remedy', async () => {
    const source = { type: 'url', url: await service().outside.file('tone.mp4', clip('tone.mp4')) };
    const outputs = [{ name: 'full', format: 'mp3' }, wordsOf()];
    const { status, body } = await service().call('POST', '/v1/extract', { json: { source, outputs } });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      details:
        'outputs[1].format: transcripts are not set up here: leave this output out, or have the operator set TRANSCRIBER_URL',
    });
  });

  it('it is told together with the faults of other fields', async () => {
    const source = { type: 'url', url: await service().outside.file('tone.mp4', clip('tone.mp4')) };
    const outputs = [{ name: 'full', format: 'mp3', quality: 'best' }, wordsOf()];
    const { body } = await service().call('POST', '/v1/extract', { json: { source, outputs } });
    expect(body.error.details).toContain('outputs[0].quality: ');
    expect(body.error.details).toContain('outputs[1].format: transcripts are not set up here');
  });
});

describe('A8. With a transcriber', () => {
  let folder: string;
  let talk: ScriptTalk;
  let service: TestService;
  let port: number;
  let source: Json;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'soundpost-test-transcripts-'));
    talk = await makeScriptTalk(12);
    await writeWav(join(folder, 'talk.wav'), talk.samples);
    port = await freePort();
    service = await TestService.start({
      environment: {
        TRANSCRIBER_URL: `http://127.0.0.1:${port}/v1`,
        TRANSCRIBER_API_KEY: KEY,
        WEBHOOK_SCHEDULE_SECONDS: Array.from({ length: 100 }, (_, nth) => nth / 2).join(','),
      },
    });
    source = { type: 'url', url: await service.outside.file('talk.wav', join(folder, 'talk.wav')) };
  });
  afterAll(async () => {
    await service.close();
    await rm(folder, { recursive: true });
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
  async function withTranscriber<T>(
    start: (port: number) => Promise<TranscriberStub>,
    work: (transcriber: TranscriberStub) => Promise<T>,
  ): Promise<T> {
    const transcriber = await start(port);
    try {
      return await work(transcriber);
    } finally {
      await transcriber.close();
    }
  }

  it.each<[Json, string]>([
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

  it('it cannot be the first output', async () => {
    const { body } = await extract({ source, outputs: [wordsOf(), { name: 'full', format: 'mp3' }] });
    expect(body.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      details: expect.stringContaining('outputs[0].format: must be an audio format in the first output'),
    });
  });

  it('the words of the talk follow the audio, on the clock of the source, and are told to the webhook', async () => {
    await withTranscriber(
      (listening) => startSphinx(VOCABULARY, listening),
      async (transcriber) => {
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

        const words = await service.call('GET', file.url, { key: null });
        expect(words.headers).toMatchObject({
          'content-type': 'application/json; charset=utf-8',
          etag: `"${file.sha256}"`,
        });
        const { segments } = JSON.parse(words.bytes.toString());
        const said = talk.words.slice(3);
        expect(segments.map(({ text }: Json) => text)).toEqual(said.map(({ text }) => text));
        for (const [index, word] of said.entries()) {
          expect(Math.abs(segments[index].start - word.start)).toBeLessThan(0.2);
        }
        const vtt = await download(jobId, 'subtitles');
        expect(vtt.headers['content-type']).toBe('text/vtt; charset=utf-8');
        expect(vtt.bytes.toString()).toMatch(/^WEBVTT\n\n00:00:00\.\d{3} --> /);

        expect(transcriber.asked[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
        const told = await until('both are told', () => {
          const events = hook.received.filter(({ json }) => json.event === 'transcript.updated');
          return events.length === 2 && events;
        });
        expect(told.map(({ json }) => json)).toContainEqual({
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
  });

  it('while the transcriber is away the audio is there and the transcript pending; it follows', async () => {
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
    await withTranscriber(startTranscriber, async () => {
      expect(await transcribed(jobId)).toMatchObject({
        transcripts: [{ status: 'completed', language: 'en' }],
      });
      expect((await download(jobId)).bytes.toString()).toContain('Part 1.');
    });
  });

  it('one that refuses the audio is believed: TRANSCRIPT_FAILED, and the job stays completed', async () => {
    await withTranscriber(startTranscriber, async (transcriber) => {
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
      expect(transcriber.asked).toHaveLength(1);
      const answer = await download(jobId);
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ success: false, error });
      const told = await until('it is told', () =>
        hook.received.find(({ json }) => json.event === 'transcript.updated'),
      );
      expect(told.json).toMatchObject({ transcript: { status: 'failed', error } });
      expect(told.text).not.toContain(KEY);
    });
  });

  it('nonsense and outages are tried again, and what was said then counts', async () => {
    await withTranscriber(startTranscriber, async (transcriber) => {
      const answers = [
        (response: Parameters<typeof hear>[0]) => response.end('<html>'),
        (response: Parameters<typeof hear>[0]) => sendJson(response, 503, {}),
        (response: Parameters<typeof hear>[0]) => response.destroy(),
      ];
      transcriber.answer = (response, asked, nth) => {
        const answer = answers[nth - 1];
        if (answer === undefined) hear(response, asked, nth);
        else answer(response);
      };
      const jobId = await service.submit(withWords({ subtitles: 'txt' }));
      expect(await transcribed(jobId)).toMatchObject({ transcripts: [{ status: 'completed' }] });
      expect((await download(jobId)).bytes.toString()).toBe('Part 4.\n');
    });
  });

  it('an erased job has nothing left, and its transcript is not waited for', async () => {
    const jobId = await service.submit(withWords());
    await service.ended(jobId);
    await service.call('DELETE', `/v1/jobs/${jobId}`);
    expect(await service.job(jobId)).toMatchObject({ transcripts: [{ status: 'failed' }] });
    expect((await download(jobId)).status).toBe(410);
    await withTranscriber(startTranscriber, async () => {
      // The turns before it have ended when this one has.
      await transcribed(await service.submit(withWords()));
      expect(await readdir(join(service.dataDir, 'files', jobId)).catch(() => [])).toEqual([]);
    });
  });

  it('its events go on until the transcript has ended', async () => {
    const jobId = await service.submit(withWords());
    await service.ended(jobId);
    const watching = service.call('GET', `/v1/jobs/${jobId}/events`);
    await withTranscriber(startTranscriber, async () => {
      const { bytes } = await watching;
      const states = [...bytes.toString().matchAll(/^data: (.*)$/gm)].map(([, data = '']) =>
        JSON.parse(data),
      );
      expect(states.map(({ transcripts }) => transcripts[0].status)).toEqual(['pending', 'completed']);
      const ids = [...bytes.toString().matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
      expect(ids[1]).toBeGreaterThan(ids[0] ?? 0);
      const again = await service.call('GET', `/v1/jobs/${jobId}/events`, {
        headers: { 'last-event-id': String(ids[1]) },
      });
      expect(again.status).toBe(204);
    });
  });
});
