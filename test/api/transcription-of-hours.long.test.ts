/** F1: a video of 3 hours and 2 GB through the package openai, beside a transcriber that works at 30 times real time. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import OpenAI from 'openai';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { expect, it } from 'vitest';
import { hear, startTranscriber } from '../followups/transcripts/transcriber-stub.ts';
import { TestService } from './api-fixture.ts';

const SECONDS = 3 * 60 * 60;
const SPEED = 30;
const NOISE = 'nullsrc=s=320x240:r=10,geq=random(1)*255:128:128';

it('F1. is heard within the transcriber’s own time and 5 % of it', async () => {
  // 20 s, again and again.
  const piece = await cachedMedia('piece.mp4', [
    ...['-f', 'lavfi', '-t', '20', '-i', NOISE, '-f', 'lavfi', '-t', '20', '-i', 'anoisesrc=a=0.2:r=48000'],
    ...[
      '-c:v',
      'mpeg4',
      '-b:v',
      '1480k',
      '-maxrate',
      '1480k',
      '-bufsize',
      '740k',
      '-c:a',
      'aac',
      '-b:a',
      '96k',
    ],
  ]);
  const again = ['-stream_loop', '-1', '-i', piece, '-t', String(SECONDS), '-c', 'copy'];
  const video = await cachedMedia('hours.mp4', again);
  const { size } = await stat(video);
  expect(size).toBeGreaterThan(1.9e9);

  const transcriber = await startTranscriber();
  let heardSeconds = 0;
  transcriber.answer = (response, asked, nth) => {
    heardSeconds += asked.seconds;
    setTimeout(() => hear(response, asked, nth), (asked.seconds / SPEED) * 1000);
  };
  const service = await TestService.start({ environment: { TRANSCRIBER_URL: transcriber.url } });
  // Its own limit of ten minutes counts the whole answer, and the sending.
  const settings = { timeout: 60 * 60 * 1000, maxRetries: 0 };
  const client = new OpenAI({ apiKey: service.key, baseURL: `${service.url}/v1`, ...settings });
  const file = createReadStream(video);
  const { text } = await client.audio.transcriptions.create({ file, model: 'whisper-1' });
  const endedAtMs = Date.now();
  // The job is made once the last byte is in; the package reads the file before it sends it.
  const [job] = (await service.call('GET', '/v1/jobs?limit=1')).body.data.jobs;
  const seconds = (endedAtMs - Date.parse(job.createdAt)) / 1000;
  await service.close();
  await transcriber.close();
  expect(heardSeconds).toBeCloseTo(SECONDS, 0);
  expect(text).toMatch(/^Part 1\. Part 2\./);
  const ownSeconds = SECONDS / SPEED;
  process.stdout.write(`${seconds.toFixed(1)} s, the transcriber alone ${ownSeconds.toFixed(1)} s\n`);
  expect(seconds).toBeLessThanOrEqual(ownSeconds * 1.05);
}, 1_800_000);
