/**
 * The workers' side of what follows a job. The end of the extraction releases the `completion` job, which adds its webhook, its voice message, its
 * transcripts and the puts to its destinations; their ids follow from the job's, so a crash in between announces once. Webhooks are delivered by
 * src/followups, transcripts made by `transcript-consumer.ts`, files put by `destination-consumer.ts`, voice messages sent here.
 */

import { type Job, WaitingChildrenError } from 'bullmq';
import { redisNow } from 'soundpost-kit/redis/clock';
import { type Announced, scheduleBackoff, type Try, tell } from './announcement-tries.ts';
import type { DestinationQueue } from './destination-queue.ts';
import { inTurn } from './in-turn.ts';
import { findJobRecord, type JobRecord } from './job-record.ts';
import { CHANGE_CHANNEL, notePartId, voiceId, webhookId } from './names.ts';
import { closeWorker, openWorker, type WorkerSettings } from './open-worker.ts';
import { CompletionPayload, type VoiceOutcome, VoicePayload } from './payloads.ts';
import { type AddWebhook, tellWebhook } from './tell-webhook.ts';
import type { TranscriptQueue } from './transcript-queue.ts';
import { TryPlaces } from './try-places.ts';
import { VOICE_SCHEDULE_SECONDS, type VoiceQueue } from './voice-queue.ts';
import { readVoice } from './voice-state.ts';

export interface AnnouncementConsumerOptions extends WorkerSettings {
  readonly addWebhook: AddWebhook;
  /** The caller closes it. */
  readonly voices: VoiceQueue;
  /** The caller closes it. */
  readonly destinations: DestinationQueue;
  readonly transcripts: Pick<TranscriptQueue, 'add'>;
  readonly sendVoice: (payload: VoicePayload, attempt: Try) => Promise<Announced<VoiceOutcome>>;
}

export interface AnnouncementConsumer {
  /** Stops taking announcements and lets those under way end for `graceMs`; what is left is made by another worker. */
  close(graceMs: number): Promise<void>;
}

const COMPLETIONS_AT_A_TIME = 16;
/** Keys and instances have fewer each. */
const VOICES_AT_A_TIME = 1000;
/** Under way at once, in all processes. A gateway answers within 165 s. */
const VOICE_PLACES = { perKey: 16, perHost: 8, leaseMs: 4 * 60_000 };
/** A message with a delay waits at the gateway up to 60 s more, and holds no place of others meanwhile. */
const VOICE_DELAY_PLACES = { perKey: 256, perHost: 128, leaseMs: 5 * 60_000 };

export function consumeAnnouncements(options: AnnouncementConsumerOptions): AnnouncementConsumer {
  const { redis, voices } = options;
  const promote = (jobId: string) => voices.promote(jobId);
  const places = new TryPlaces({ ...VOICE_PLACES, redis, name: 'voice', promote });
  const delayPlaces = new TryPlaces({ ...VOICE_DELAY_PLACES, redis, name: 'voice-delay', promote });
  const placesOf = ({ request }: VoicePayload) => (request.delay ? delayPlaces : places);
  const completions = openWorker('completion', (job, token = '') => complete(job, token, options), options, {
    concurrency: COMPLETIONS_AT_A_TIME,
  });
  const messages = openWorker(
    'voice',
    (job, token = '') => {
      const payload = VoicePayload.parse(job.data);
      const turn = { key: payload.tenant, host: payload.request.instance };
      return inTurn(job, token, placesOf(payload), turn, () => sendVoice(job, options));
    },
    options,
    {
      concurrency: VOICES_AT_A_TIME,
      settings: { backoffStrategy: scheduleBackoff(VOICE_SCHEDULE_SECONDS) },
    },
  );
  const published = ({ data }: Job): void => {
    const { success, data: payload } = VoicePayload.safeParse(data);
    const warn = (error: Error): void =>
      options.logger.warn({ error: error.message }, 'after a voice message');
    if (success) redis.publish(CHANGE_CHANNEL, payload.jobId).catch(warn);
  };
  // Not before its end stands in its record, which whoever watches the job reads.
  messages.on('completed', published);
  messages.on('failed', (job) => {
    // Otherwise another try follows.
    if (job?.finishedOn !== undefined) published(job);
  });
  return {
    async close(graceMs) {
      // There is nothing to give up: a try that is cut off is made again, and each kind knows how to do that once.
      await Promise.all(
        [completions, messages].map((worker) => closeWorker(worker, graceMs, () => undefined)),
      );
    },
  };
}

async function complete(job: Job, token: string, options: AnnouncementConsumerOptions): Promise<object> {
  const { jobId } = CompletionPayload.parse(job.data);
  // A parent that is started while its child is unfinished would use up its tries.
  if (await job.moveToWaitingChildren(token)) {
    throw new WaitingChildrenError();
  }
  const record = await findJobRecord(options.redis, jobId);
  if (record !== undefined) {
    await announce(record, options);
  }
  return {};
}

async function announce(
  record: JobRecord,
  { addWebhook, voices, transcripts, destinations }: AnnouncementConsumerOptions,
): Promise<void> {
  const { jobId, payload, status, finishedAtMs } = record;
  const { voiceMessage } = payload.options;
  const event = status === 'completed' ? 'job.completed' : 'job.failed';
  await tellWebhook(record, addWebhook, { deliveryId: webhookId(jobId), event }, finishedAtMs ?? redisNow());
  if (voiceMessage !== undefined && status === 'completed') {
    await voices.add(payload.tenant, jobId, voiceId(jobId), voiceMessage);
  }
  for (const { name } of record.result?.transcripts ?? []) await transcripts.add(payload.tenant, jobId, name);
  await destinations.add(record);
}

async function sendVoice(
  job: Job,
  { redis, addWebhook, voices, sendVoice: send }: AnnouncementConsumerOptions,
): Promise<VoiceOutcome> {
  const payload = VoicePayload.parse(job.data);
  const { tenant, jobId, sendId, part, round, request } = payload;
  const outcome = await tell(job, payload, send);
  const record = await findJobRecord(redis, jobId);
  const next = part + 1;
  if (outcome.status === 'sent' && next < (record?.result?.voice?.parts?.length ?? 1)) {
    // Before this one counts as ended: a crash in between adds the same once more, which changes nothing.
    await voices.add(tenant, jobId, sendId, request, next);
    return outcome;
  }
  if (record?.payload.options.webhook !== undefined) {
    await tellWebhook(record, addWebhook, {
      deliveryId: webhookId(`${notePartId(sendId, part)}${round === 0 ? '' : `-${round}`}`),
      event: 'voice.updated',
      voiceMessage: await readVoice(redis, record, sendId, { part, outcome, attempts: job.attemptsMade + 1 }),
    });
  }
  return outcome;
}
