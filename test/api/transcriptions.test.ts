/** F1: transcription as OpenAI's own client asks for it, `openai` from npm as it is. */
import { createReadStream } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import OpenAI from 'openai';
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { wavHead } from 'soundpost-media/notes/pcm-file';
import { fetch } from 'soundpost-testing/http';
import { until } from 'soundpost-testing/until';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pace } from '../../src/api/openai/patience.ts';
import { spendTranscript } from '../../src/jobs/transcript-minutes.ts';
import {
  hear,
  sendJson,
  startTranscriber,
  type TranscriberStub,
} from '../followups/transcripts/transcriber-stub.ts';
import { type Json, TestService, useClips } from './api-fixture.ts';

const clip = useClips('tone.mp4', 'silent.mp4');
const MAX_BYTES = 200_000;
const MINUTES = 1000;
const paceBefore = { ...pace };

let transcriber: TranscriberStub;
let service: TestService;
let redis: Redis;

beforeAll(async () => {
  transcriber = await startTranscriber();
  service = await TestService.start({
    environment: {
      TRANSCRIBER_URL: transcriber.url,
      TRANSCRIBER_MODEL: 'large-v3',
      MAX_INPUT_BYTES: String(MAX_BYTES),
      TRANSCRIPT_MINUTES_PER_DAY: String(MINUTES),
      WEBHOOK_SCHEDULE_SECONDS: Array.from({ length: 10 }, (_, nth) => nth / 10).join(','),
    },
  });
  redis = connectRedis({ url: service.redis.url, role: 'request', logger: createLogger('silent') });
});
beforeEach(() => {
  transcriber.answer = hear;
});
afterEach(() => Object.assign(pace, paceBefore));
afterAll(async () => {
  await closeRedis(redis);
  await service.close();
  await transcriber.close();
});

const client = (apiKey = service.key): OpenAI =>
  new OpenAI({ apiKey, baseURL: `${service.url}/v1`, maxRetries: 0 });
const file = () => createReadStream(clip('tone.mp4'));
const model = 'whisper-1';
type Params = Partial<OpenAI.Audio.TranscriptionCreateParamsNonStreaming>;
const transcribe = (more: Params = {}, by = client()): Promise<Json> =>
  by.audio.transcriptions.create({ file: file(), model, ...more } as never);
const tenantOf = (key: string): string => key.split('_')[1] ?? '';
const newestJob = async (key?: string): Promise<Json> =>
  (await service.call('GET', '/v1/jobs?limit=1', key ? { key } : {})).body.data.jobs[0];
/** Of a promise that must reject. */
const errorOf = (promise: Promise<unknown>): Promise<Json> =>
  promise.then(
    (answer) => {
      throw new Error(`no error but ${JSON.stringify(answer)}`);
    },
    (error) => error,
  );

describe('F1. The package openai gets', () => {
  it('json of a stream of a file, and the job is listed', async () => {
    const asked = transcriber.asked.length;
    expect(await transcribe({ language: 'en', prompt: 'Names: Ada.', temperature: 0.2 })).toEqual({
      text: `Part ${asked + 1}.`,
    });
    expect(transcriber.asked).toHaveLength(asked + 1);
    expect(transcriber.asked.at(-1)).toMatchObject({
      path: '/v1/audio/transcriptions',
      fields: { model: 'large-v3', language: 'en', prompt: 'Names: Ada.', temperature: '0.2' },
    });
    const { jobId } = await newestJob();
    const job = await service.job(jobId);
    expect(job).toMatchObject({
      status: 'completed',
      source: { type: 'upload', name: 'tone.mp4' },
      outputs: [{ name: 'transcript', format: 'transcript', prompt: 'Names: Ada.' }],
      outputFile: null,
      outputFiles: [{ name: 'transcript', format: 'transcript', filename: 'tone.json' }],
      transcripts: [{ status: 'completed', language: 'en' }],
    });
    const whole = await service.call('GET', `/v1/download/${jobId}`);
    expect(JSON.parse(whole.bytes.toString())).toMatchObject({ text: `Part ${asked + 1}.` });
  });

  it('verbose_json of a Blob, with words', async () => {
    transcriber.answer = (response, { seconds }) =>
      sendJson(response, 200, {
        ...{ task: 'transcribe', language: 'english', duration: seconds, text: ' Hello there.' },
        segments: [{ id: 0, start: 0, end: 1, text: ' Hello there.' }],
        words: [
          { word: 'Hello', start: 0.1, end: 0.4 },
          { word: 'there', start: 0.5, end: 0.9 },
        ],
      });
    const blob = new File([await readFile(clip('tone.mp4'))], 'blob.mp4');
    const answer = await transcribe({
      file: blob,
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    });
    expect(answer).toEqual({
      ...{ task: 'transcribe', language: 'english', duration: expect.closeTo(1, 1), text: 'Hello there.' },
      segments: [
        {
          ...{ id: 0, seek: 0, start: 0, end: 1, text: 'Hello there.', tokens: [], temperature: 0 },
          ...{ avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 },
        },
      ],
      words: [
        { word: 'Hello', start: 0.1, end: 0.4 },
        { word: 'there', start: 0.5, end: 0.9 },
      ],
    });
  });

  it.each([
    ['text', /^Part \d+\.\n$/],
    ['srt', /^1\n00:00:00,000 --> 00:00:0\d,\d{3}\nPart \d+\.\n/],
    ['vtt', /^WEBVTT\n\n00:00:00\.000 --> 00:00:0\d\.\d{3}\nPart \d+\.\n/],
  ] as const)('%s as a text', async (response_format, expected) => {
    expect(await transcribe({ response_format })).toMatch(expected);
  });

  it('a translation by the transcriber', async () => {
    const { text } = await client().audio.translations.create({ file: file(), model });
    expect(text).toBe(`Part ${transcriber.asked.length}.`);
    expect(transcriber.asked.at(-1)?.path).toBe('/v1/audio/translations');
  });

  it('the one model', async () => {
    const { data } = await client().models.list();
    expect(data).toEqual([{ id: 'large-v3', object: 'model', created: 0, owned_by: 'soundpost' }]);
  });
});

const form = async (fields: Json, bytes: Buffer | undefined, isFileFirst = false): Promise<FormData> => {
  const parts = new FormData();
  const addFile = () => bytes && parts.append('file', new Blob([new Uint8Array(bytes)]), 'tone.mp4');
  if (isFileFirst) addFile();
  for (const [name, value] of Object.entries(fields)) parts.append(name, String(value));
  if (!isFileFirst) addFile();
  return parts;
};
const post = async (fields: Json, bytes?: Buffer, isFileFirst = false) =>
  service.call('POST', '/v1/audio/transcriptions', { body: await form(fields, bytes, isFileFirst) });

describe('F1. A form', () => {
  it.each([true, false])('may have its file before the fields: %s', async (isFileFirst) => {
    const { status, headers, bytes } = await post(
      { response_format: 'text', language: '', stream: 'true' },
      await readFile(clip('tone.mp4')),
      isFileFirst,
    );
    expect([status, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(bytes.toString()).toMatch(/^Part \d+\.\n$/);
    expect(headers['soundpost-job']).toMatch(/^job_/);
  });

  // Open WebUI posts with requests for Python; n8n's OpenAI node with form-data, and the name of a
  // file only where the item has one.
  it.each([
    ['Open WebUI', 'Content-Disposition: form-data; name="file"; filename="5d6c.wav"'],
    ['n8n', 'Content-Disposition: form-data; name="file"\r\nContent-Type: audio/wav'],
  ])('may be as %s sends it', async (_client, head) => {
    const text = (name: string, value: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const before = `${text('model', 'whisper-1')}${text('language', 'en')}--b\r\n${head}\r\n\r\n`;
    const answer = await fetch(`${service.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'multipart/form-data; boundary=b' },
      body: Buffer.concat([
        Buffer.from(before),
        await readFile(clip('tone.mp4')),
        Buffer.from('\r\n--b--\r\n'),
      ]),
    });
    expect([answer.status, await answer.json()]).toEqual([200, { text: expect.stringMatching(/^Part/) }]);
  });

  it('may name an address in place of the file', async () => {
    const url = await service.outside.file('tone.mp4', clip('tone.mp4'));
    expect((await post({ url })).body).toEqual({ text: expect.stringMatching(/^Part/) });
  });

  it.each<[string, Json, string | null]>([
    ['no file and no address', {}, 'file'],
    ['another format', { response_format: 'diarized_json', url: 'http://a.example/' }, 'response_format'],
    ['a temperature above 1', { temperature: 2, url: 'http://a.example/' }, 'temperature'],
    ['no language', { language: 'English, please', url: 'http://a.example/' }, 'language'],
    ['a private address', { url: 'http://127.0.0.1:1/' }, 'url'],
  ])('with %s is refused by the name of the field', async (_what, fields, param) => {
    const { status, headers, body } = await post(fields);
    expect([status, headers['x-should-retry']]).toEqual([400, 'false']);
    expect(body.error).toMatchObject({ type: 'invalid_request_error', param });
  });
});

describe('F1. The package openai understands', () => {
  it('a wrong key', async () => {
    const error = await errorOf(transcribe({}, client('sp_aaaaaaaa_wrong')));
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error' });
    expect(error.headers.get('x-should-retry')).toBe('false');
  });

  it('a key without the scope', async () => {
    const key = await service.newKey({ scopes: ['extract', 'read'] });
    expect(await errorOf(transcribe({}, client(key)))).toMatchObject({ status: 403, code: 'forbidden' });
  });

  it('a file that is too large, and leaves none of it', async () => {
    const large = new File(
      [Buffer.concat([await readFile(clip('tone.mp4')), Buffer.alloc(MAX_BYTES)])],
      'a.mp4',
    );
    const kept = () => readdir(service.dataDir, { recursive: true });
    const before = await kept();
    const error = await errorOf(transcribe({ file: large }));
    expect(error).toMatchObject({ status: 413, code: 'payload_too_large' });
    expect((await kept()).filter((name) => !before.includes(name))).toEqual([]);
  });

  it('a file without sound, and one that is none', async () => {
    const silent = await errorOf(transcribe({ file: createReadStream(clip('silent.mp4')) }));
    expect(silent).toMatchObject({ status: 400, code: 'extraction_failed' });
    expect(silent.message).toContain('no audio stream');
    const none = await errorOf(transcribe({ file: new File(['words'], 'words.txt') }));
    expect(none).toMatchObject({ status: 400, code: 'invalid_video' });
  });

  it('a transcriber that is away: after a few attempts, without another one by the client', async () => {
    let attempts = 0;
    transcriber.answer = (response) => {
      attempts += 1;
      response.destroy();
    };
    const error = await errorOf(transcribe());
    expect(error).toMatchObject({ status: 500, code: 'transcript_failed', type: 'server_error' });
    expect(error.headers.get('x-should-retry')).toBe('false');
    expect(attempts).toBe(3);
  });
});

describe('A6. A recording that is longer than what is left of the key’s minutes of the day', () => {
  const left = 2;
  /** The day's minutes but two seconds are spent, and the file has three. */
  const asking = async () => {
    const key = await service.newKey();
    await spendTranscript(redis, tenantOf(key), MINUTES, MINUTES * 60 - left);
    const bytes = Buffer.concat([wavHead(96_000), Buffer.alloc(96_000, 1)]);
    return () => transcribe({ file: new File([bytes], 'three.wav') }, client(key));
  };
  const expectSpent = (error: Json) => {
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'requests' });
    expect(error.message).toContain('TRANSCRIPT_MINUTES_PER_DAY');
    expect(Number(error.headers.get('retry-after'))).toBeGreaterThan(86_000);
    expect(error.headers.get('x-should-retry')).toBe('false');
  };

  it('is 429, and not heard', async () => {
    const asked = transcriber.asked.length;
    expectSpent(await errorOf((await asking())()));
    expect(transcriber.asked).toHaveLength(asked);
  });

  it('breaks an answer that has begun off, and is 429 when it is asked for again', async () => {
    pace.beatMs = 1;
    const ask = await asking();
    await errorOf(ask());
    pace.beatMs = paceBefore.beatMs;
    expectSpent(await errorOf(ask()));
  });
});

/** Holds the transcriber's answer until `letGo`. */
function held(): { heard: () => number; letGo: () => void } {
  const gate = Promise.withResolvers<void>();
  let heard = 0;
  transcriber.answer = async (response, asked, nth) => {
    heard += 1;
    await gate.promise;
    hear(response, asked, nth);
  };
  return { heard: () => heard, letGo: () => gate.resolve() };
}

describe('F1. An answer that comes late', () => {
  beforeEach(() => {
    pace.beatMs = 20;
  });

  const late = async (response_format: string): Promise<Response> => {
    const { heard, letGo } = held();
    // The headers come while the transcriber still thinks.
    const answer = await fetch(`${service.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}` },
      body: await form({ response_format }, await readFile(clip('tone.mp4'))),
    });
    await until('the transcriber was asked', () => heard() === 1);
    letGo();
    return answer;
  };

  it('is JSON behind spaces', async () => {
    const answer = await late('json');
    const text = await answer.text();
    expect([answer.status, text.startsWith(' ')]).toEqual([200, true]);
    expect(JSON.parse(text)).toEqual({ text: expect.stringMatching(/^Part/) });
  });

  it.each([
    ['srt', /^\n+1\n00:00:00,000 -->/],
    ['text', /^\n+Part \d+\.\n$/],
    ['vtt', /^WEBVTT\n\n(NOTE\n\n)+00:00:00\.000 -->/],
  ])('in %s is valid', async (response_format, expected) => {
    expect(await (await late(response_format)).text()).toMatch(expected);
  });

  it('is broken off when it fails after all', async () => {
    const gate = Promise.withResolvers<void>();
    transcriber.answer = async (response) => {
      await gate.promise;
      sendJson(response, 400, {});
    };
    const heardBefore = transcriber.asked.length;
    const bytes = await readFile(clip('tone.mp4'));
    const answer = await fetch(`${service.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}` },
      body: await form({}, bytes),
    });
    expect(answer.status).toBe(200);
    gate.resolve();
    await expect(answer.text()).rejects.toThrow();
    // The package for Python takes it for a lost connection, and repeats the request.
    const again = await post({}, bytes);
    expect([again.status, again.headers['x-should-retry'], again.body.error.code]).toEqual([
      ...[500, 'false', 'transcript_failed'],
    ]);
    expect(transcriber.asked.length - heardBefore).toBe(1);
    transcriber.answer = hear;
    expect((await post({}, bytes)).status).toBe(200);
  });
});

describe('F1. A caller that leaves', () => {
  /** Once the transcriber is asked. */
  const waiting = async (key: string, heard: () => number, fields: Json = {}) => {
    const heardBefore = heard();
    const left = new AbortController();
    const asked = client(key).audio.transcriptions.create(
      { file: file(), model, ...fields },
      { signal: left.signal },
    );
    const error = errorOf(asked);
    const { jobId } = await until('the transcriber hears', async () => {
      return heard() > heardBefore && newestJob(key);
    });
    const leave = async (): Promise<void> => {
      left.abort();
      expect(await error).toBeInstanceOf(OpenAI.APIUserAbortError);
    };
    return { jobId, leave };
  };
  const leaving = async (...of: Parameters<typeof waiting>): Promise<{ jobId: string }> => {
    const { jobId, leave } = await waiting(...of);
    await leave();
    return { jobId };
  };

  const givenUp = (jobId: string, key: string) =>
    until('the transcript is given up', async () => {
      const { transcripts } = await service.job(jobId, { key });
      return transcripts[0].status === 'failed';
    });

  it('cancels, once it has not come back', async () => {
    Object.assign(pace, { beatMs: 20, rejoinMs: 20 });
    const { heard, letGo } = held();
    const key = await service.newKey();
    const { jobId } = await leaving(key, heard);
    await givenUp(jobId, key);
    letGo();
  });

  it('and sends the same again joins: it is heard once', async () => {
    const { heard, letGo } = held();
    const key = await service.newKey();
    const { jobId } = await leaving(key, heard);
    // The headers of its answer come while the first request's job is still being heard.
    pace.beatMs = 20;
    const again = await client(key).audio.transcriptions.create({ file: file(), model }).asResponse();
    expect(again.headers.get('soundpost-job')).toBe(jobId);
    letGo();
    expect(await again.json()).toEqual({ text: expect.stringMatching(/^Part/) });
    expect(heard()).toBe(1);
    const { jobs } = (await service.call('GET', '/v1/jobs', { key })).body.data;
    expect(jobs).toHaveLength(1);
  });

  it('leaves the job to another request that waits for it', async () => {
    pace.beatMs = 20;
    const { heard, letGo } = held();
    const key = await service.newKey();
    const left = new AbortController();
    const leaver = await client(key)
      .audio.transcriptions.create({ file: file(), model }, { signal: left.signal })
      .asResponse();
    const stayer = await client(key).audio.transcriptions.create({ file: file(), model }).asResponse();
    const ids = [leaver, stayer].map(({ headers }) => headers.get('soundpost-job'));
    expect(ids[0]).toBe(ids[1]);
    await until('the transcriber is asked', () => heard() === 1);
    // Long enough for a busy machine to hold the job in time.
    pace.rejoinMs = 1000;
    left.abort();
    await leaver.text().catch(() => undefined);
    // One that leaves later is given up later.
    const other = await leaving(key, heard, { language: 'fr' });
    await givenUp(other.jobId, key);
    letGo();
    expect(await stayer.json()).toEqual({ text: expect.stringMatching(/^Part/) });
    expect(heard()).toBe(2);
  });

  it('and an equal one at the same time are one job', async () => {
    const { heard, letGo } = held();
    const key = await service.newKey();
    const asked = Array.from({ length: 4 }, () => transcribe({}, client(key)));
    await until('the transcriber is asked', () => heard() === 1);
    letGo();
    expect(new Set((await Promise.all(asked)).map(({ text }) => text)).size).toBe(1);
    expect((await service.call('GET', '/v1/jobs', { key })).body.data.jobs).toHaveLength(1);
  });

  it('is heard anew after its job was erased', async () => {
    const key = await service.newKey();
    await transcribe({}, client(key));
    const { jobId } = await newestJob(key);
    await service.call('DELETE', `/v1/jobs/${jobId}`, { key });
    expect(await transcribe({}, client(key))).toEqual({ text: expect.stringMatching(/^Part/) });
    expect((await newestJob(key)).jobId).not.toBe(jobId);
  });

  it('cancels a job that is still fetched', async () => {
    Object.assign(pace, { beatMs: 20, rejoinMs: 20 });
    const { url, begun, letGo } = await service.outside.stalling('slow.mp4', clip('tone.mp4'));
    const key = await service.newKey();
    const left = new AbortController();
    const asked = fetch(`${service.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { 'x-api-key': key },
      body: await form({ url }, undefined),
      signal: left.signal,
    });
    const { headers } = await asked;
    await until('it is fetched', begun);
    left.abort();
    const job = await service.ended(headers.get('soundpost-job') ?? '', { key });
    expect(job.error.code).toBe('JOB_CANCELLED');
    letGo();
  });

  /** The same request as {@link leaving}'s, of which half has come. */
  const arriving = async (key: string) => {
    const form = new FormData();
    form.append('file', new Blob([await readFile(clip('tone.mp4'))]), 'tone.mp4');
    form.append('model', model);
    const whole = new Response(form);
    const bytes = Buffer.from(await whole.clone().arrayBuffer());
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': whole.headers.get('content-type') ?? '',
    };
    const sending = request(`${service.url}/v1/audio/transcriptions`, {
      ...{ method: 'POST', headers: { ...headers, 'content-length': bytes.length } },
    });
    const answer = new Promise<Json>((resolve, reject) => {
      sending.once('response', (response) => resolve(json(response)));
      sending.once('error', reject);
    });
    answer.catch(() => undefined);
    sending.write(bytes.subarray(0, bytes.length / 2));
    await until('it arrives', () => redis.exists(ownKey('transcription-arriving', tenantOf(key))));
    return {
      finish: () => {
        sending.end(bytes.subarray(bytes.length / 2));
        return answer;
      },
      breakOff: () => sending.destroy(),
    };
  };

  it('is waited for while a file of the key arrives, which may be the same', async () => {
    // Its margin for a busy machine is as long as `rejoinMs`.
    Object.assign(pace, { beatMs: 100, rejoinMs: 2000 });
    const { heard, letGo } = held();
    const [key, otherKey] = [await service.newKey(), await service.newKey()];
    const { jobId, leave } = await waiting(key, heard);
    const other = await waiting(otherKey, heard);
    const upload = await arriving(key);
    await leave();
    // The other one leaves later, and nothing of it arrives.
    await other.leave();
    await givenUp(other.jobId, otherKey);
    const answer = upload.finish();
    await until('it has joined', async () => {
      return (await redis.exists(ownKey('transcription-arriving', tenantOf(key)))) === 0;
    });
    letGo();
    expect(await answer).toEqual({ text: expect.stringMatching(/^Part/) });
    expect(heard()).toBe(2);
    expect((await newestJob(key)).jobId).toBe(jobId);
  });

  it('is not waited for longer than 120 beats, however slow a file arrives', async () => {
    Object.assign(pace, { beatMs: 20, rejoinMs: 20, mostBeats: 2 });
    const { heard, letGo } = held();
    const key = await service.newKey();
    const { jobId, leave } = await waiting(key, heard);
    const upload = await arriving(key);
    await leave();
    await givenUp(jobId, key);
    upload.breakOff();
    letGo();
  });

  it('joins no job of other fields or another key', async () => {
    const { heard, letGo } = held();
    const key = await service.newKey();
    await leaving(key, heard);
    const others = [
      transcribe({ language: 'de' }, client(key)),
      transcribe({}, client(await service.newKey())),
    ];
    letGo();
    await Promise.all(others);
    expect(heard()).toBe(3);
  });
});
