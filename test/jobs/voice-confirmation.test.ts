/** A voice message that a caller asks for counts once its API has confirmed it (docs/decisions/0031-accepted-or-never.md). */
import { ownKey } from 'soundpost-kit/redis/keys';
import { until } from 'soundpost-testing/until';
import { expect, it } from 'vitest';
import { JobFollowUps } from '../../src/followups/job-followups.ts';
import { scheduled } from '../../src/followups/kind.ts';
import { FollowUpWorker } from '../../src/followups/worker.ts';
import { fetchExtraction, isVoiceConfirmed } from '../../src/jobs/bullmq-internals.ts';
import { VoicePayload } from '../../src/jobs/payloads.ts';
import { logger, TENANT, useQueue } from './queue-fixture.ts';

const queue = useQueue();

function open() {
  const { redis } = queue();
  const followUps = new JobFollowUps({ redis, recordSeconds: 60, webhookTries: 1, logger });
  queue().onClose(() => followUps.close());
  const sent: string[] = [];
  return { followUps, sent };
}

/** Sends what is wanted, as the kind of voice messages sees to it. */
async function send(followUps: JobFollowUps, sent: string[]): Promise<void> {
  const redis = queue().connect('worker');
  const worker = await FollowUpWorker.start({
    ...{ queue: followUps.queues.voice, redis, isAlone: false, concurrency: 1, lockSeconds: 30, logger },
    kindOf: () => ({
      payload: VoicePayload,
      isWanted: ({ sendId }) => isVoiceConfirmed(redis, sendId),
      prepare: async () => ({ ready: undefined }),
      async try(_ready, { sendId }) {
        sent.push(sendId);
        return { outcome: 'done', result: {} };
      },
      schedule: scheduled([0]),
    }),
  });
  queue().onClose(() => worker.close(0));
}

const asked = (jobId: string, sendId: string) => ({
  ...{ tenant: TENANT, jobId, sendId },
  request: VoicePayload.shape.request.parse({ instance: 'main', number: '12025550101' }),
});

it('is sent once it is confirmed, shown by its job, and its answer is kept', async () => {
  const { redis } = queue();
  const { followUps, sent } = open();
  await send(followUps, sent);
  const jobId = await queue().submit();
  await followUps.askVoice(asked(jobId, 'one'));
  expect(await redis.exists(ownKey('deliveries', jobId))).toBe(0);
  const record = ownKey('idempotency', TENANT, 'key');
  await followUps.confirmVoice(asked(jobId, 'one'), { record, fingerprint: 'f', seed: 's', answer: '{}' });
  await until('it is sent', () => sent.length > 0);
  expect(sent).toEqual(['one']);
  expect(await fetchExtraction(redis, jobId)).toMatchObject({ spVoiceSend: 'one' });
  expect(await redis.hget(record, 'answer')).toBe('{}');
});

it('is never sent without its confirmation, and nothing of it is left', async () => {
  const { followUps, sent } = open();
  const jobId = await queue().submit();
  await followUps.askVoice(asked(jobId, 'one'));
  // Its ten seconds are over.
  const job = await queue().queue('voice').getJob('one');
  await job?.promote();
  await send(followUps, sent);
  await until('it is gone', async () => (await queue().queue('voice').getJob('one')) === undefined);
  expect(sent).toEqual([]);
  // A confirmation that comes late after all has it sent, as its answer said.
  await followUps.confirmVoice(asked(jobId, 'one'), undefined);
  await until('it is sent', () => sent.length > 0);
});
