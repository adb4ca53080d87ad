/** Turns of a transcript: their tries count since the last part that was heard, and each ending is told. */
import { ownKey } from 'soundpost-kit/redis/keys';
import { subscribe } from 'soundpost-kit/redis/subscription';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import type { Attempt, Tried } from '../../src/followups/kind.ts';
import { transcriptKind } from '../../src/followups/kinds/transcript.ts';
import { readTranscripts } from '../../src/followups/state/transcripts.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { fetchFollowUp } from '../../src/jobs/bullmq-internals.ts';
import { findJobRecord } from '../../src/jobs/job-record.ts';
import { CHANGE_CHANNEL, transcriptId } from '../../src/jobs/names.ts';
import type { TranscriptOutcome, TranscriptPayload } from '../../src/jobs/payloads.ts';
import { resultOf } from './job-result.ts';
import { destinedPayload, logger, newJobId, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();

const FAILED: TranscriptOutcome = {
  status: 'failed',
  error: { code: 'TRANSCRIPT_FAILED', message: 'the transcript could not be made' },
};
type Turn = Tried<TranscriptOutcome>;
const again: Turn = { outcome: 'retry', error: 'not now' };
const more: Turn = { outcome: 'step' };
const done: Turn = { outcome: 'done', result: FAILED };

type TakeTurn = (payload: TranscriptPayload, attempt: Attempt, signal: AbortSignal) => Promise<Turn>;

/** @param instead `tidy` is called when an ending was told; `parts` are 2 */
async function consume(
  takeTurn: TakeTurn,
  {
    parts = 2,
    tidy = async () => undefined as unknown,
  }: { parts?: number; tidy?: (payload: TranscriptPayload) => Promise<unknown> } = {},
) {
  const redis = queue().connect('worker');
  const followUps = new JobFollowUps({ redis, webhookTries: 1, recordSeconds: 3600, logger });
  const readJob = (jobId: string) => findJobRecord(redis, jobId);
  const options = {
    ...{ readJob, followUps, parts, partMs: 60_000, logSeconds: 3600 },
    scheduleSeconds: [0, 0.01, 0.02],
  };
  const kind = {
    ...transcriptKind(options as unknown as Parameters<typeof transcriptKind>[0]),
    prepare: async () => ({ ready: undefined }),
    try: (_: undefined, ...of: Parameters<TakeTurn>) => takeTurn(...of),
    tidy,
  };
  const consumer = await FollowUpWorker.start({
    ...{ redis, lockSeconds: 30, logger, queue: followUps.queues.transcript },
    ...{ kindOf: () => kind, isAlone: false, concurrency: 100 },
  });
  queue().onClose(() => followUps.close());
  queue().onClose(() => consumer.close(0));
  const add = (jobId: string, tenant = TENANT) => followUps.addTranscript(tenant, jobId, 'words');
  return { consumer, followUps, add };
}

const ends = (jobId: string) =>
  until('the transcript has ended', async () => {
    const { hasEnded } = await fetchFollowUp(queue().redis, 'transcript', transcriptId(jobId, 'words'));
    return hasEnded;
  });

/** The turns, one after the other; resolves with what each was told of its tries. */
async function take(turns: readonly Turn[], jobId = newJobId()): Promise<unknown[]> {
  const attempts: unknown[] = [];
  const { consumer, add } = await consume(async (_payload, attempt) => {
    attempts.push(attempt);
    return turns[attempts.length - 1] ?? done;
  });
  await add(jobId);
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
    expect(await queue().toldWebhook(2)).toMatchObject({
      'transcript.updated': { transcript: { name: 'words', status: 'failed' } },
      'destination.updated': {
        name: 'words',
        destination: { status: 'failed', error: { message: 'the transcript could not be made' } },
      },
    });
  });

  it('end at once where no further one can help, which is told', async () => {
    const jobId = await withAudio();
    const changed = await watchChanges();
    const ended: string[] = [];
    let turns = 0;
    const { add } = await consume(
      async () => {
        turns += 1;
        return { outcome: 'final', error: 'no turn will ever help' };
      },
      { tidy: async (payload) => void ended.push(payload.jobId) },
    );
    await add(jobId);
    await until('it is told', () => ended.length > 0 && changed.length > 0);
    // What comes after it in the same queue has ended as well: the first is told of no second time.
    const later = newJobId();
    await add(later);
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
    const { add } = await consume(async () => {
      return { outcome: 'final', error: 'no turn will ever help' };
    });
    await add(jobId);
    expect(await queue().toldWebhook(2)).toMatchObject({
      'transcript.updated': { transcript: { name: 'words', ...FAILED } },
      'destination.updated': { name: 'words', destination: { status: 'failed' } },
    });
  });

  it('are listed as the tries of one delivery, each with its reason', async () => {
    const jobId = newJobId();
    const turns: Turn[] = [
      { ...again, httpStatus: 503, latencyMs: 3 },
      { ...more, httpStatus: 200, latencyMs: 5 },
      { ...done, error: 'there is no transcriber' },
    ];
    const { followUps, add } = await consume(async () => turns.shift() ?? done);
    await add(jobId);
    await ends(jobId);
    expect(await followUps.list(jobId, () => ({ event: '' }))).toMatchObject([
      {
        ...{ deliveryId: transcriptId(jobId, 'words'), kind: 'transcript', name: 'words' },
        ...{ status: 'failed', nextAttemptAt: null },
        attempts: [
          { httpStatus: 503, latencyMs: 3, error: 'not now' },
          { httpStatus: 200, latencyMs: 5, error: null },
          { httpStatus: null, error: 'there is no transcriber' },
        ],
      },
    ]);
  });

  it('of two keys alternate where there is one place', async () => {
    const taken: string[] = [];
    const waiting = ownKey('places', 'transcript', 'keys');
    const { add } = await consume(
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
    for (const { tenant, jobId } of jobs) await add(jobId, tenant);
    for (const { jobId } of jobs) await ends(jobId);
    const [one, other] = taken;
    expect(taken).toEqual([one, other, one, other, one, other, one, other]);
    expect(new Set([one, other])).toEqual(new Set(['tenantaa', 'tenantbb']));
  });
});
