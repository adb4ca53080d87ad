/**
 * The workers' side of transcripts. A turn is one part of a recording: then the job goes back to the queue, so that transcripts of several keys take turns and a
 * long one holds no place for hours. Parts that were heard are kept by whoever takes the turn.
 */
import { DelayedError, type Job } from 'bullmq';
import { redisNow } from 'soundpost-kit/redis/clock';
import { type Announced, forgetTries, scheduleBackoff, type Try, tell } from './announcement-tries.ts';
import type { DestinationQueue } from './destination-queue.ts';
import { NOT_MADE, shownDestination } from './destination-state.ts';
import { inTurn } from './in-turn.ts';
import { findJobRecord } from './job-record.ts';
import { CHANGE_CHANNEL, destinationId, transcriptId, webhookId } from './names.ts';
import { closeWorker, openWorker, type WorkerSettings } from './open-worker.ts';
import { type TranscriptOutcome, TranscriptPayload } from './payloads.ts';
import { type AddWebhook, tellWebhook } from './tell-webhook.ts';
import type { TranscriptQueue } from './transcript-queue.ts';
import { LOST, progressOf } from './transcript-state.ts';
import { TryPlaces } from './try-places.ts';

/** `more`: a part was heard, and there are others. */
export type Turn = Announced<TranscriptOutcome | 'more'> & {
  /** What the turn says of the transcriber; undefined: nothing, such as after a failure of our own. */
  readonly transcriber?: 'answered' | 'failed';
};

export interface TranscriptConsumerOptions extends WorkerSettings {
  readonly addWebhook: AddWebhook;
  /** The caller closes it. */
  readonly transcripts: TranscriptQueue;
  readonly destinations: Pick<DestinationQueue, 'addTranscript'>;
  /** When the transcriber is tried, seconds after the first time. */
  readonly scheduleSeconds: readonly number[];
  /** Parts that are under way at once, in all processes together. */
  readonly parts: number;
  /** How long a turn may take. */
  readonly turnMs: number;
  /** @param stopping aborted when the turn is to be given up, to be taken again */
  readonly takeTurn: (payload: TranscriptPayload, attempt: Try, stopping: AbortSignal) => Promise<Turn>;
  /** Removes what the transcript was made of. */
  readonly onEnd: (payload: TranscriptPayload) => Promise<void>;
}

export interface TranscriptConsumer {
  /** Stops taking transcripts and lets turns under way end for `graceMs`; what is left is taken by another worker. */
  close(graceMs: number): Promise<void>;
}

/** There are fewer places; the others are put back. */
const TAKEN_AT_A_TIME = 100;
/** There is one transcriber. */
const HOST = 'transcriber';

export function consumeTranscripts(options: TranscriptConsumerOptions): TranscriptConsumer {
  const { redis, transcripts, parts, turnMs, scheduleSeconds, logger, onEnd } = options;
  const places = new TryPlaces({
    redis,
    name: 'transcript',
    perKey: parts,
    perHost: parts,
    leaseMs: turnMs,
    promote: (id) => transcripts.promote(id),
  });
  const stopping = new AbortController();
  const worker = openWorker(
    'transcript',
    (job, token = '') => takeInTurn(job, token, places, stopping.signal, options),
    options,
    { concurrency: TAKEN_AT_A_TIME, settings: { backoffStrategy: scheduleBackoff(scheduleSeconds) } },
  );
  // Those who watch the job look now and then all the same, and the janitor finds what is left.
  const onEnded = (payload: TranscriptPayload): Promise<unknown> =>
    Promise.all([redis.publish(CHANGE_CHANNEL, payload.jobId), onEnd(payload)]);
  const warn = (error: Error): void => logger.warn({ error: error.message }, 'after a transcript');
  worker.on('completed', ({ data }) => {
    onEnded(TranscriptPayload.parse(data)).catch(warn);
  });
  worker.on('failed', (job) => {
    const { data: payload } = TranscriptPayload.safeParse(job?.data);
    // Otherwise another try follows.
    if (job?.finishedOn === undefined || payload === undefined) return;
    announce(payload, { status: 'failed', error: LOST }, options)
      .then(() => onEnded(payload))
      .catch(warn);
  });
  return {
    close: (graceMs) => closeWorker(worker, graceMs, () => stopping.abort()),
  };
}

async function takeInTurn(
  job: Job,
  token: string,
  places: TryPlaces,
  stopping: AbortSignal,
  options: TranscriptConsumerOptions,
): Promise<TranscriptOutcome> {
  const payload = TranscriptPayload.parse(job.data);
  const turn = { key: payload.tenant, host: HOST };
  const ended = await inTurn(job, token, places, turn, async (note) => {
    try {
      const take = async (_: TranscriptPayload, attempt: Try): Promise<Turn> => {
        const taken = await options.takeTurn(payload, attempt, stopping);
        note(taken.transcriber);
        return taken;
      };
      const outcome = await tell(job, payload, take, options.scheduleSeconds.length);
      if (outcome !== 'more') {
        await announce(payload, outcome, options);
        return outcome;
      }
      await forgetTries(job);
    } catch (error) {
      if (!stopping.aborted) throw error;
      note(undefined);
    }
    return undefined;
  });
  if (ended !== undefined) return ended;
  // Neither costs a try.
  await job.moveToDelayed(redisNow(), token);
  throw new DelayedError();
}

async function announce(
  { jobId, name }: TranscriptPayload,
  outcome: TranscriptOutcome,
  { redis, addWebhook, destinations }: TranscriptConsumerOptions,
): Promise<void> {
  const record = await findJobRecord(redis, jobId);
  const audio = record?.result?.transcripts?.find((one) => one.name === name);
  if (record === undefined || audio === undefined) return;
  const { state, file } = progressOf(audio, outcome);
  if (file !== undefined) await destinations.addTranscript(record, file);
  await tellWebhook(record, addWebhook, {
    deliveryId: webhookId(transcriptId(jobId, name)),
    event: 'transcript.updated',
    transcript: state,
    ...(file && { transcriptFile: file }),
  });
  const destination = file === undefined ? shownDestination(record, name, NOT_MADE) : undefined;
  if (destination !== undefined) {
    await tellWebhook(record, addWebhook, {
      deliveryId: webhookId(destinationId(jobId, name)),
      event: 'destination.updated',
      ...{ name, destination },
    });
  }
}
