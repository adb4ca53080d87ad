/** F1: what is heard of a recording while it is still decoded. The test is the decoder. */
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from 'soundpost-kit/observe/logger';
import { wavHead } from 'soundpost-media/notes/pcm-file';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type EarlyServices, hearEarly } from '../../../src/followups/transcripts/early.ts';
import { hear, sendJson, startTranscriber, type TranscriberStub } from './transcriber-stub.ts';

const PART_SECONDS = 4;
const SECONDS = 10;
const tenant = 'tenant01';

let folder: string;
let path: string;
let transcriber: TranscriberStub;
let left: unknown[];
let aborting: AbortController;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-test-early-'));
  path = join(folder, 'growing.wav');
  transcriber = await startTranscriber();
  left = [];
  aborting = new AbortController();
});
afterEach(async () => {
  await transcriber.close();
  await rm(folder, { recursive: true, force: true });
});

function start(more: Partial<EarlyServices> = {}) {
  const places = { name: 'transcript', perKey: 1, perHost: 1, leaseMs: 1000 } as const;
  return hearEarly(
    {
      ...{ jobId: 'job_0123456789abcdef', tenant, path, workspace: folder, seconds: SECONDS },
      output: { format: 'transcript', name: 'words', subtitles: 'txt', language: 'en' },
      signal: aborting.signal,
      makeRoom: async () => undefined,
    },
    {
      transcriber: { url: transcriber.url, apiKey: undefined, model: 'whisper-1', timeoutMs: 60_000 },
      logger: createLogger('silent'),
      places: { take: async () => true, leave: async (_claim, status) => void left.push(status) },
      claimOf: ({ jobId }) => ({ jobId, key: tenant, host: 'transcriber', places }),
      mostPartBytes: PART_SECONDS * 32_000 + 44,
      ...more,
    },
  );
}

const sound = (seconds: number, fill = 0): Buffer => Buffer.alloc(seconds * 32_000, fill);
/** As ffmpeg writes it: how long it will be is not known. */
const begin = (seconds: number) => writeFile(path, Buffer.concat([wavHead(0x7fffffff), sound(seconds)]));
const goOn = (seconds: number, fill = 0) => appendFile(path, sound(seconds, fill));
const isAsked = (parts: number) => until('a part is heard', () => transcriber.asked.length === parts);
const total = (asked: readonly { seconds: number }[]) => asked.reduce((sum, { seconds }) => sum + seconds, 0);

it('is sent a part as soon as the next one has begun, and what is left is for the follow-up', async () => {
  const spent: number[] = [];
  await using early = await start({ spend: async (_tenant, seconds) => spent.push(seconds) > 0 });
  await begin(PART_SECONDS);
  await goOn(1);
  await isAsked(1);
  const [first] = transcriber.asked;
  expect(first?.fields).toMatchObject({ language: 'en' });
  expect(first?.seconds).toBeLessThanOrEqual(PART_SECONDS);
  expect(spent).toEqual([first?.seconds]);
  await goOn(SECONDS - PART_SECONDS - 1);
  const recording = await early?.end();
  const { parts = [], heard = [] } = recording ?? {};
  expect(heard.length).toBe(transcriber.asked.length);
  expect(heard[0]?.segments).toMatchObject([{ start: 0, text: 'Part 1.' }]);
  expect(parts[0]).toEqual({ from: 0, to: (first?.seconds ?? 0) * 50 });
  // Without gap or overlap, whatever was heard of it.
  expect(parts.map(({ from }) => from)).toEqual([0, ...parts.slice(0, -1).map(({ to }) => to)]);
  expect(parts.at(-1)?.to).toBe(SECONDS * 50);
  expect(recording?.owedSeconds).toBeCloseTo(SECONDS - total(transcriber.asked));
  expect(left).toEqual(transcriber.asked.map(() => 200));
});

it('is waited for in the end', async () => {
  const gate = Promise.withResolvers<void>();
  transcriber.answer = async (...args) => {
    await gate.promise;
    hear(...args);
  };
  await using early = await start();
  await begin(SECONDS);
  await isAsked(1);
  const ended = early?.end();
  gate.resolve();
  expect((await ended)?.heard).toHaveLength(1);
  expect(transcriber.asked).toHaveLength(1);
});

it('is dropped where the decode began anew and made other samples', async () => {
  await using early = await start();
  await begin(PART_SECONDS);
  await goOn(1);
  await isAsked(1);
  await until('it is answered', () => left.length === 1);
  await begin(0);
  await goOn(SECONDS, 1);
  const recording = await early?.end();
  expect(recording?.heard).toEqual([]);
  // The key is not charged with it again.
  expect(recording?.owedSeconds).toBeCloseTo(SECONDS - total(transcriber.asked));
});

it('that the transcriber refuses is left to the follow-up, with its retries', async () => {
  transcriber.answer = (response) => sendJson(response, 503, {});
  await using early = await start();
  await begin(SECONDS);
  await until('it is answered', () => left.length === 1);
  expect((await early?.end())?.heard).toEqual([]);
  expect(left).toEqual([503]);
  expect(transcriber.asked).toHaveLength(1);
});

it('is given up with the job, and leaves its place', async () => {
  const closed = Promise.withResolvers<void>();
  transcriber.answer = (response) => response.once('close', closed.resolve);
  await using early = await start();
  await begin(SECONDS);
  await isAsked(1);
  const ended = early?.end();
  aborting.abort(new Error('cancelled'));
  await expect(ended).rejects.toThrow('cancelled');
  await closed.promise;
  expect(left).toEqual([undefined]);
});

it('is not begun without a place', async () => {
  const asked: unknown[] = [];
  const places = {
    take: async (claim: unknown) => asked.push(claim) < 0,
    leave: async (_claim: unknown, status: unknown) => void left.push(status),
  };
  await using early = await start({ places });
  await begin(SECONDS);
  await until('it waits', () => asked.length > 0);
  expect((await early?.end())?.heard).toEqual([]);
  expect(transcriber.asked).toEqual([]);
  expect(left).toEqual([undefined]);
});

it('is not begun for a recording that the key has not the minutes for, or of one part', async () => {
  expect(await start({ leftSeconds: async () => SECONDS - 1 })).toBeUndefined();
  expect(await start({ mostPartBytes: SECONDS * 32_000 + 44 })).toBeUndefined();
  expect(await start({ transcriber: undefined })).toBeUndefined();
});
