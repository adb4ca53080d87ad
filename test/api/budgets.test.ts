/** A6. What a key is held back by: seen in the answer, in its usage, in a metric and in the log. */
import { createLogger } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { rateKey, takeRate } from 'soundpost-kit/redis/rate';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chargeProcessor, RECORD_BYTES_PER_MINUTE } from '../../src/jobs/reservation.ts';
import { spendTranscript } from '../../src/jobs/transcript-minutes.ts';
import { type Answer, type Json, useService } from './api-fixture.ts';
import { amountOf } from './metrics/samples.ts';

const lines: string[] = [];
const service = useService({
  parts: [],
  environment: {
    CPU_SECONDS_PER_MINUTE: '30',
    LOG_LEVEL: 'warn',
    TRANSCRIBER_URL: 'http://127.0.0.1:9/v1',
    TRANSCRIPT_MINUTES_PER_DAY: '2',
  },
  log: (line) => lines.push(line),
});
let redis: Redis;
beforeAll(() => {
  redis = connectRedis({ url: service().redis.url, role: 'request', logger: createLogger('silent') });
});
afterAll(() => closeRedis(redis));

const idOf = (key: string): string => key.split('_')[1] ?? '';
const job = (more: Json = {}): Json => ({
  source: { type: 'url', url: `http://127.0.0.1:${service().outside.port}/a.mp4` },
  output: { format: 'mp3' },
  ...more,
});
const withTranscript = (): Json => ({
  ...job({ output: undefined }),
  outputs: [
    { name: 'full', format: 'mp3' },
    { name: 'words', format: 'transcript' },
  ],
});
const submit = (key: string, json: Json): Promise<Answer> =>
  service().call('POST', '/v1/extract', { key, json });
const usageOf = async (key: string): Promise<Json> =>
  (await service().call('GET', '/v1/usage', { key })).body.data;

/** That the key was refused so many times for the limit, and logged once. */
async function expectHeld(key: string, limit: string, times: number): Promise<void> {
  const { bytes } = await service().call('GET', '/metrics');
  expect(amountOf(bytes.toString(), 'soundpost_key_held_total', { key: idOf(key), limit })).toBe(times);
  const logged = lines
    .map((line) => JSON.parse(line))
    .filter((line) => line.key === idOf(key) && line.audit !== true);
  expect(logged).toMatchObject([{ limit, msg: 'a key is held back by its limit' }]);
}

describe('a key that has used up', () => {
  it('its bytes of records submits no more, which a small request does not change', async () => {
    const key = await service().newKey();
    const first = await usageOf(key);
    expect((await submit(key, job())).status).toBe(202);
    const { recordBytes } = await usageOf(key);
    expect(first.recordBytes.remaining).toBe(RECORD_BYTES_PER_MINUTE);
    expect(recordBytes.remaining).toBeLessThan(RECORD_BYTES_PER_MINUTE - 100);
    const cost = recordBytes.remaining - 10;
    await takeRate(redis, 'records', idOf(key), { limit: RECORD_BYTES_PER_MINUTE, cost });
    const answers = [await submit(key, job()), await submit(key, job())];
    for (const { status, headers, body } of answers) {
      expect([status, body.error.code]).toEqual([429, 'RATE_LIMITED']);
      expect(headers['ratelimit-policy']).toBe(`"records";q=${RECORD_BYTES_PER_MINUTE};w=60`);
      expect(headers.ratelimit).toMatch(/^"records";r=10;t=\d+$/);
      expect(headers['retry-after']).toMatch(/^[1-9]\d?$/);
    }
    // What was refused has cost no submission.
    expect((await usageOf(key)).submissions.remaining).toBe(first.submissions.remaining - 1);
    await expectHeld(key, 'record_bytes', 2);
  });

  it('its transcript minutes submits no transcript, but audio', async () => {
    const key = await service().newKey();
    expect((await submit(key, withTranscript())).status).toBe(202);
    expect((await usageOf(key)).transcriptSeconds).toMatchObject({ limit: 120, remaining: 120 });
    await spendTranscript(redis, idOf(key), 2, 119.2);
    const { status, headers, body } = await submit(key, withTranscript());
    expect([status, body.error.code]).toEqual([429, 'RATE_LIMITED']);
    expect(body.error.message).toContain('2 minutes');
    expect(headers['ratelimit-policy']).toBe('"transcripts";q=120;w=86400');
    expect(Number(headers['retry-after'])).toBeGreaterThan(86_000);
    expect((await submit(key, job())).status).toBe(202);
    expect((await usageOf(key)).transcriptSeconds.remaining).toBe(0);
    await expectHeld(key, 'transcript_minutes', 1);
  });
});

it('a look at the usage writes nothing, so it opens no window', async () => {
  const key = await service().newKey();
  await usageOf(key);
  expect(await redis.exists(rateKey('submit', idOf(key)), rateKey('records', idOf(key)))).toBe(0);
});

it('a recording that is longer than the rest of the day takes nothing of it', async () => {
  const key = idOf(await service().newKey());
  expect(await spendTranscript(redis, key, 2, 100)).toMatchObject({ taken: true, remaining: 20 });
  expect(await spendTranscript(redis, key, 2, 21)).toMatchObject({ taken: false, remaining: 20 });
  expect(await spendTranscript(redis, key, 2, 20)).toMatchObject({ taken: true, remaining: 0 });
});

it('processor time that is owed shows in the usage, and is paid off by time', async () => {
  const key = await service().newKey();
  expect((await usageOf(key)).processorSeconds).toEqual({ limit: 30, remaining: 30, resetSeconds: 0 });
  await chargeProcessor(redis, idOf(key), 15, 30);
  const { remaining, resetSeconds } = (await usageOf(key)).processorSeconds;
  expect(remaining).toBeGreaterThanOrEqual(15);
  expect(remaining).toBeLessThan(30);
  expect(resetSeconds).toBeGreaterThan(0);
  expect(resetSeconds).toBeLessThanOrEqual(30);
});

it('a transcript needs the scope transcribe', async () => {
  const key = await service().newKey({ scopes: ['extract', 'read'] });
  const { status, body } = await submit(key, withTranscript());
  expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
  expect(body.error.message).toContain('transcribe');
});
