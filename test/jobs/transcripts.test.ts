/** Turns of a transcript: their tries count since the last part that was heard, and each ending is told. */
import { UnrecoverableError } from 'bullmq';
import { ownKey } from 'soundpost-kit/redis/keys';
import { subscribe } from 'soundpost-kit/redis/subscription';
import { until } from 'soundpost-testing/until';
import { beforeEach, describe, expect, it } from 'vitest';
import { fetchSequel } from '../../src/jobs/bullmq-internals.ts';
import { DestinationQueue } from '../../src/jobs/destination-queue.ts';
import { CHANGE_CHANNEL, transcriptId } from '../../src/jobs/names.ts';
import type { TranscriptOutcome, WebhookPayload } from '../../src/jobs/payloads.ts';
import { consumeTranscripts, type Turn } from '../../src/jobs/transcript-consumer.ts';
import { TranscriptQueue } from '../../src/jobs/transcript-queue.ts';
import { readTranscripts } from '../../src/jobs/transcript-state.ts';
import { failingSinceMs } from '../../src/jobs/try-places.ts';
import { resultOf } from './job-result.ts';
import { aborted, destinedPayload, logger, newJobId, TENANT, useQueue } from './queue-fixture.ts';

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

type Options = Parameters<typeof consumeTranscripts>[0];

/** @param instead `onEnd` is called when an ending was told; `parts` are 2 */
function consume(takeTurn: Options['takeTurn'], instead: Partial<Options> = {}) {
  const redis = queue().connect('worker');
  const common = { redis, recordSeconds: 3600, logger };
  const transcripts = new TranscriptQueue(common);
  const destinations = new DestinationQueue(common);
  const consumer = consumeTranscripts({
    ...{ redis, lockSeconds: 30, logger, transcripts, destinations },
    addWebhook: async (payload) => void told.push(payload),
    scheduleSeconds: [0, 0.01, 0.02],
    parts: 2,
    turnMs: 60_000,
    takeTurn,
    onEnd: async () => undefined,
    ...instead,
  });
  queue().onClose(() => transcripts.close());
  queue().onClose(() => destinations.close());
  queue().onClose(() => consumer.close(0));
  return { consumer, transcripts };
}

const ends = (jobId: string) =>
  until('the transcript has ended', async () => {
    const { hasEnded } = await fetchSequel(queue().redis, 'transcript', transcriptId(jobId, 'words'));
    return hasEnded;
  });

/** The turns, one after the other; resolves with what each was told of its tries. */
async function take(turns: readonly Turn[], jobId = newJobId()): Promise<unknown[]> {
  const attempts: unknown[] = [];
  const { consumer, transcripts } = consume(async (_payload, attempt) => {
    attempts.push(attempt);
    return turns[attempts.length - 1] ?? done;
  });
  await transcripts.add(TENANT, jobId, 'words');
  await ends(jobId);
  await consumer.close(0);
  return attempts;
}

/** A completed job with the audio of a transcript. */
async function withAudio(): Promise<string> {
  const jobId = newJobId();
  const payload = destinedPayload(jobId, { webhook: 'https://client.example/hook' });
  await queue().take(TENANT, { jobId, payload });
  const audio = { name: 'words', storageKey: `files/${jobId}/a.wav`, filename: 'words.vtt' };
  const timeline = { startOffset: 0, filledSeconds: 0 };
  queue().consume(async () => ({
    ...resultOf(jobId),
    transcripts: [{ ...audio, subtitles: 'vtt', timeline }],
  }));
  await queue().reaches(jobId, 'completed');
  return jobId;
}

/** Jobs that are told to have changed, from now on. */
async function watchChanges(): Promise<readonly string[]> {
  const changed: string[] = [];
  const stop = subscribe(
    queue().connect('worker'),
    { [CHANGE_CHANNEL]: (jobId) => void changed.push(jobId) },
    () => undefined,
  );
  queue().onClose(async () => stop());
  await until('somebody listens', async () => {
    const [, listening] = (await queue().redis.call('PUBSUB', 'NUMSUB', CHANGE_CHANNEL)) as unknown[];
    return Number(listening) > 0;
  });
  return changed;
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
    const jobId = await withAudio();
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

  it('end at once where no further one can help, which is told', async () => {
    const jobId = await withAudio();
    const changed = await watchChanges();
    const ended: string[] = [];
    let turns = 0;
    const { transcripts } = consume(
      async () => {
        turns += 1;
        throw new UnrecoverableError('no turn will ever help');
      },
      { onEnd: async (payload) => void ended.push(payload.jobId) },
    );
    await transcripts.add(TENANT, jobId, 'words');
    await until('it is told', () => ended.length > 0 && changed.length > 0);
    // What comes after it in the same queue has ended as well: the first is told of no second time.
    const later = newJobId();
    await transcripts.add(TENANT, later, 'words');
    await until('the later one is told', () => ended.includes(later));
    expect(ended).toEqual([jobId, later]);
    expect(turns).toBe(2);
    expect(changed).toContain(jobId);
    const record = await queue().reaches(jobId, 'completed');
    const [progress] = await readTranscripts(queue().redis, record);
    expect(progress?.state).toMatchObject({ name: 'words', status: 'failed', error: FAILED.error });
  });

  it('that end so are told to the webhook as any failure', async () => {
    const jobId = await withAudio();
    const { transcripts } = consume(async () => {
      throw new UnrecoverableError('no turn will ever help');
    });
    await transcripts.add(TENANT, jobId, 'words');
    await until('both are told', () => told.length === 2);
    expect(told).toMatchObject([
      { event: 'transcript.updated', transcript: { name: 'words', ...FAILED } },
      { event: 'destination.updated', name: 'words', destination: { status: 'failed' } },
    ]);
  });

  it('that a shutdown interrupts are taken by another worker, as the same try', async () => {
    const jobId = newJobId();
    const begun = Promise.withResolvers<void>();
    const first = consume(async (_payload, _attempt, stopping) => {
      begun.resolve();
      return aborted(stopping);
    });
    await first.transcripts.add(TENANT, jobId, 'words');
    await begun.promise;
    await first.consumer.close(0);
    const attempts: unknown[] = [];
    consume(async (_payload, attempt) => {
      attempts.push(attempt);
      return done;
    });
    await ends(jobId);
    expect(attempts).toEqual([{ number: 1, last: false }]);
  });

  it('of two keys alternate where there is one place', async () => {
    const taken: string[] = [];
    const waiting = ownKey('places', 'transcript', 'groups');
    const { transcripts } = consume(
      async ({ tenant }) => {
        taken.push(tenant);
        // The other one, which has turns left until the eighth, has asked for the place before it is free.
        if (taken.length < 8) {
          await until('the other one waits', async () => (await queue().redis.zcard(waiting)) === 1);
        }
        return taken.filter((one) => one === tenant).length < 4 ? more : done;
      },
      { parts: 1 },
    );
    const jobs = ['tenantaa', 'tenantbb'].map((tenant) => ({ tenant, jobId: newJobId() }));
    for (const { tenant, jobId } of jobs) await transcripts.add(tenant, jobId, 'words');
    for (const { jobId } of jobs) await ends(jobId);
    const [one, other] = taken;
    expect(taken).toEqual([one, other, one, other, one, other, one, other]);
    expect(new Set([one, other])).toEqual(new Set(['tenantaa', 'tenantbb']));
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
