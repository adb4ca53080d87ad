/**
 * The workers' side of putting finished files to their destinations. A put that was cut off is begun anew by another worker; its id follows from the
 * job's and the output's, and so does that of its webhook.
 */
import { type Job, WaitingError } from 'bullmq';
import { type Announced, scheduleBackoff, type Try, tell } from './announcement-tries.ts';
import { type DestinationQueue, PUT_SCHEDULE_SECONDS } from './destination-queue.ts';
import { NOT_PUT, shownDestination } from './destination-state.ts';
import { inTurn } from './in-turn.ts';
import { findJobRecord } from './job-record.ts';
import { CHANGE_CHANNEL, destinationId, webhookId } from './names.ts';
import { closeWorker, openWorker, type WorkerSettings } from './open-worker.ts';
import { type DestinationOutcome, DestinationPayload } from './payloads.ts';
import { type AddWebhook, tellWebhook } from './tell-webhook.ts';
import { TryPlaces } from './try-places.ts';

interface DestinationConsumerOptions extends WorkerSettings {
  /** The caller closes it. */
  readonly destinations: DestinationQueue;
  readonly addWebhook: AddWebhook;
  /** Rejects with the reason of the signal when that aborts. */
  readonly put: (
    payload: DestinationPayload,
    attempt: Try,
    signal: AbortSignal,
  ) => Promise<Announced<DestinationOutcome>>;
}

interface DestinationConsumer {
  /** Begins no put any more. Those under way have `graceMs`; then they are broken off, and begun anew by another worker. */
  close(graceMs: number): Promise<void>;
}

/** Each takes a file handle, a socket and little memory. */
const PUTS_AT_A_TIME = 64;
/** Under way at once, in all processes. The lease is longer than a put may take. */
const PUT_PLACES = { perKey: 8, perHost: 32, leaseMs: 7 * 60 * 60_000 };

export function consumeDestinations(options: DestinationConsumerOptions): DestinationConsumer {
  const { redis, destinations, logger } = options;
  const closing = new AbortController();
  const places = new TryPlaces({
    ...PUT_PLACES,
    redis,
    name: 'destination',
    promote: (id) => destinations.promote(id),
  });
  const attempt = async (job: Job, token = ''): Promise<DestinationOutcome> => {
    const { tenant, origin } = DestinationPayload.parse(job.data);
    const turn = { key: tenant, host: origin };
    try {
      return await inTurn(job, token, places, turn, () => put(job, options, closing.signal));
    } catch (error) {
      if (error !== closing.signal.reason) throw error;
      await job.moveToWait(token);
      throw new WaitingError();
    }
  };
  const worker = openWorker('destination', attempt, options, {
    concurrency: PUTS_AT_A_TIME,
    settings: { backoffStrategy: scheduleBackoff(PUT_SCHEDULE_SECONDS) },
  });
  const published = (jobId: string): Promise<unknown> => redis.publish(CHANGE_CHANNEL, jobId);
  const warn = (error: Error): void => logger.warn({ error: error.message }, 'destinations');
  // Not before its end stands in its record, which whoever watches the job reads.
  worker.on('completed', ({ data }) => {
    published(DestinationPayload.parse(data).jobId).catch(warn);
  });
  worker.on('failed', (job) => {
    const { data: payload } = DestinationPayload.safeParse(job?.data);
    // Otherwise another try follows.
    if (job?.finishedOn === undefined || payload === undefined) return;
    announce(payload, NOT_PUT, options)
      .then(() => published(payload.jobId))
      .catch(warn);
  });
  return {
    close: (graceMs) =>
      closeWorker(worker, graceMs, () => closing.abort(new Error('the put was interrupted by a shutdown'))),
  };
}

async function put(
  job: Job,
  options: DestinationConsumerOptions,
  signal: AbortSignal,
): Promise<DestinationOutcome> {
  const payload = DestinationPayload.parse(job.data);
  const outcome = await tell(job, payload, (_, attempt) => options.put(payload, attempt, signal));
  await announce(payload, outcome, options);
  return outcome;
}

async function announce(
  { jobId, name }: DestinationPayload,
  outcome: DestinationOutcome,
  { redis, addWebhook }: DestinationConsumerOptions,
): Promise<void> {
  const record = await findJobRecord(redis, jobId);
  const destination = record && shownDestination(record, name, outcome);
  if (record === undefined || destination === undefined) return;
  await tellWebhook(record, addWebhook, {
    deliveryId: webhookId(destinationId(jobId, name)),
    event: 'destination.updated',
    ...{ name, destination },
  });
}
