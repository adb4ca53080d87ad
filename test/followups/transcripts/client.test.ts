/** What a transcriber is sent for a part, and what each of its answers means. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wavHead } from 'soundpost-media/notes/pcm-file';
import { freePort } from 'soundpost-testing/ports';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type PartAnswer, transcribePart } from '../../../src/followups/transcripts/client.ts';
import { sendJson, startTranscriber, type TranscriberStub } from './transcriber-stub.ts';

const KEY = 'sk-secret-of-the-transcriber';
const SECONDS = 2;

let folder: string;
let stub: TranscriberStub;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-test-transcriber-'));
  const samples = Buffer.alloc(SECONDS * 32_000);
  await writeFile(join(folder, 'part.wav'), Buffer.concat([wavHead(samples.length), samples]));
  stub = await startTranscriber();
});
afterEach(async () => {
  await stub.close();
  await rm(folder, { recursive: true });
});

function ask(
  more: { url?: string; apiKey?: string; timeoutMs?: number; language?: string; signal?: AbortSignal } = {},
): Promise<PartAnswer> {
  const {
    url = stub.url,
    apiKey,
    timeoutMs = 60_000,
    language,
    signal = new AbortController().signal,
  } = more;
  const part = { path: join(folder, 'part.wav'), seconds: SECONDS, language };
  return transcribePart({ url, apiKey, model: 'whisper-1', timeoutMs }, part, signal);
}

test('the part as a file, the model, and times of segments; key and language where there are some', async () => {
  expect(await ask()).toEqual({
    kind: 'heard',
    httpStatus: 200,
    heard: { language: 'en', segments: [{ start: 0, end: 2, text: 'Part 1.' }] },
  });
  expect(stub.asked[0]).toMatchObject({
    path: '/v1/audio/transcriptions',
    fields: { model: 'whisper-1', response_format: 'verbose_json', 'timestamp_granularities[]': 'segment' },
    seconds: SECONDS,
  });
  expect(stub.asked[0]?.fields).not.toHaveProperty('language');
  expect(stub.asked[0]?.headers).not.toHaveProperty('authorization');
  expect(stub.asked[0]?.audio.subarray(0, 4).toString()).toBe('RIFF');

  await ask({ apiKey: KEY, language: 'en-GB' });
  expect(stub.asked[1]?.headers.authorization).toBe(`Bearer ${KEY}`);
  expect(stub.asked[1]?.fields.language).toBe('en');
});

test.for([
  [400, 'refused'],
  [413, 'refused'],
  [415, 'refused'],
  [422, 'refused'],
  [401, 'not-now'],
  [403, 'not-now'],
  [404, 'not-now'],
  [408, 'not-now'],
  [409, 'not-now'],
  [425, 'not-now'],
  [429, 'not-now'],
  [500, 'not-now'],
  [503, 'not-now'],
] as const)('%i is %s', async ([status, kind]) => {
  stub.answer = (response) => sendJson(response, status, { error: { message: 'so it is' } });
  expect(await ask()).toMatchObject({
    kind,
    error: `the transcriber answered ${status}`,
    said: '{"error":{"message":"so it is"}}',
  });
});

test('it says when it wants to be asked again', async () => {
  stub.answer = (response) => response.writeHead(503, { 'retry-after': '17' }).end();
  expect(await ask()).toMatchObject({ kind: 'not-now', retryAfterSeconds: 17 });
});

test('a key that it repeats is not told on', async () => {
  stub.answer = (response) => sendJson(response, 401, { error: `the key ${KEY} is unknown` });
  expect(JSON.stringify(await ask({ apiKey: KEY }))).not.toContain(KEY);
});

test('a redirect is not followed: neither audio nor key go elsewhere', async () => {
  const elsewhere = await startTranscriber();
  stub.answer = (response) =>
    response.writeHead(307, { location: `${elsewhere.url}/audio/transcriptions` }).end();
  expect(await ask({ apiKey: KEY })).toMatchObject({
    kind: 'not-now',
    error: 'the transcriber answered 307: redirects are not followed',
  });
  expect(elsewhere.asked).toEqual([]);
  await elsewhere.close();
});

test('nonsense is to be tried again, with the reason', async () => {
  stub.answer = (response) => response.end('<html>welcome</html>');
  expect(await ask()).toEqual({
    kind: 'not-now',
    error: 'the answer of the transcriber is of no use: no JSON',
  });
});

test('an answer without end is broken off', async () => {
  stub.answer = (response) => {
    const more = (): void => {
      while (response.write('a'.repeat(1024 * 1024)) && !response.destroyed);
    };
    response.on('drain', more).on('error', () => undefined);
    more();
  };
  expect(await ask()).toMatchObject({ kind: 'not-now', error: expect.stringContaining('more than 4 MiB') });
});

test('a server that is away, one that breaks off, and one that is too slow', async () => {
  stub.answer = (response) => response.destroy();
  expect(await ask()).toMatchObject({ kind: 'not-now', error: 'the transcriber broke off' });
  stub.answer = () => undefined;
  expect(await ask({ timeoutMs: 50 })).toMatchObject({
    kind: 'not-now',
    error: 'the transcriber did not answer in time',
  });
  expect(await ask({ url: `http://127.0.0.1:${await freePort()}/v1` })).toMatchObject({
    kind: 'not-now',
    error: 'the transcriber could not be reached',
  });
});

test('whoever gives it up gets the reason', async () => {
  const controller = new AbortController();
  stub.answer = () => controller.abort(new Error('enough'));
  await expect(ask({ signal: controller.signal })).rejects.toThrow('enough');
});
