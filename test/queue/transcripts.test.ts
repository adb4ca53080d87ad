/** Turns of a transcript: their tries count since the last part that was heard, and each ending is told. */
import { beforeEach, describe, expect, it } from 'vitest';
import { fetchSequel } from '../../src/queue/bullmq-internals.ts';
import { DestinationQueue } from '../../src/queue/destination-queue.ts';
import { transcriptId } from '../../src/queue/names.ts';
import type { TranscriptOutcome, WebhookPayload } from '../../src/queue/payloads.ts';
import { consumeTranscripts, type Turn } from '../../src/queue/transcript-consumer.ts';
import { TranscriptQueue } from '../../src/queue/transcript-queue.ts';
import { failingSinceMs } from '../../src/queue/try-places.ts';
import { until } from '../until.ts';
import { resultOf } from './job-result.ts';
import { destinedPayload, logger, newJobId, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();

const FAILED: TranscriptOutcome = {
  status: 'failed',
  error: { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made' },
};
const again: Turn = { outcome: 'retry', error: 'not now' };
const more: Turn = { outcome: 'done', result: 'more' };
const done: Turn = { outcome: 'done', result: FAILED };

let told: WebhookPayload[];
beforeEach(() => {
  told = [];
});

/** The turns, one after the other; resolves with what each was told of its tries. */
async function take(turns: readonly Turn[], jobId = newJobId()): Promise<unknown[]> {
  const redis = queue().connect('worker');
  const common = { redis, recordSeconds: 3600, logger };
  const transcripts = new TranscriptQueue(common);
  const destinations = new DestinationQueue(common);
  const attempts: unknown[] = [];
  const consumer = consumeTranscripts({
    ...{ redis, lockSeconds: 30, logger, transcripts, destinations },
    addWebhook: async (payload) => void told.push(payload),
    scheduleSeconds: [0, 0.01, 0.02],
    parts: 2,
    turnMs: 60_000,
    takeTurn: async (_payload, attempt) => {
      attempts.push(attempt);
      return turns[attempts.length - 1] ?? done;
    },
    onEnd: async () => undefined,
  });
  queue().onClose(() => transcripts.close());
  queue().onClose(() => destinations.close());
  await transcripts.add(TENANT, jobId, 'words');
  await until('the transcript has ended', async () => {
    const { hasEnded } = await fetchSequel(queue().redis, 'transcript', transcriptId(jobId, 'words'));
    return hasEnded;
  });
  await consumer.close(0);
  return attempts;
}

describe('the turns of a transcript', () => {
  it('are tried as often as the schedule says since the last part that was heard', async () => {
    expect(await take([again, again, more, more, again, again, done])).toEqual([
      { number: 1, last: false },
      { number: 2, last: false },
      { number: 3, last: true },
      { number: 1, last: false },
      { number: 1, last: false },
      { number: 2, last: false },
      { number: 3, last: true },
    ]);
  });

  it('that fail are told, and that there is nothing to put', async () => {
    const jobId = newJobId();
    const payload = destinedPayload(jobId, { webhook: 'https://client.example/hook' });
    await queue().jobs.submit(TENANT, [{ jobId, payload }]);
    const audio = {
      name: 'words',
      storageKey: `files/${jobId}/a.wav`,
      subtitles: 'vtt',
      filename: 'words.vtt',
    };
    const timeline = { startOffset: 0, filledSeconds: 0 };
    queue().consume(async () => ({
      ...resultOf(jobId),
      transcripts: [{ ...audio, subtitles: 'vtt', timeline }],
    }));
    await until('the job is completed', async () => (await queue().jobs.read(jobId))?.status === 'completed');
    await take([done], jobId);
    expect(told).toMatchObject([
      { event: 'transcript.updated', transcript: { name: 'words', status: 'failed' } },
      {
        event: 'destination.updated',
        name: 'words',
        destination: { status: 'failed', error: { message: 'the transcript could not be made' } },
      },
    ]);
  });

  it('blame the transcriber only for what it did', async () => {
    const failing = () => failingSinceMs(queue().redis, 'transcript', 'transcriber');
    await take([again, again, more, again, again, done]);
    expect(await failing()).toBeUndefined();
    const itsFault: Turn = { ...again, transcriber: 'failed' };
    await take([itsFault, itsFault, more, itsFault, done]);
    expect(await failing()).toEqual(expect.any(Number));
  });
});
