/** The worker process: made of the configuration, consumes jobs and announcements, cleans up, closes. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { UrlSigner } from 'soundpost-kit/signing/signed-url';
import { Workspaces } from 'soundpost-kit/storage/workspaces';
import { endStrayTools } from 'soundpost-media/stray-tools';
import { DeliveryWorker } from '../followups/delivery-worker.ts';
import { JobWebhooks } from '../followups/job-webhooks.ts';
import { putToDestination } from '../followups/kinds/destination.ts';
import { deliverVoice } from '../followups/kinds/voice.ts';
import { jobWebhookKind } from '../followups/kinds/webhook.ts';
import { consumeAnnouncements } from '../jobs/announcement-consumer.ts';
import { isErased } from '../jobs/bullmq-internals.ts';
import { consumeDestinations } from '../jobs/destination-consumer.ts';
import { DestinationQueue } from '../jobs/destination-queue.ts';
import { consumeExtractions } from '../jobs/extraction-consumer.ts';
import { Janitor } from '../jobs/janitor/janitor.ts';
import { findJobRecord } from '../jobs/job-record.ts';
import { closeQueues, openQueues } from '../jobs/open-queue.ts';
import { noteJobSeconds } from '../jobs/outlook.ts';
import { filesOf } from '../jobs/payloads.ts';
import { chargeProcessor } from '../jobs/processor-budget.ts';
import { readQueues } from '../jobs/queue-state.ts';
import { Semaphore } from '../jobs/semaphore.ts';
import { TranscriptQueue } from '../jobs/transcript-queue.ts';
import { IncomingStates } from '../jobs/uploads/incoming-states.ts';
import { uploadStorageKey } from '../jobs/uploads/record.ts';
import { VoiceQueue } from '../jobs/voice-queue.ts';
import { WorkerRegistry } from '../jobs/worker-registry.ts';
import {
  incomingFolder,
  publicUrlOf,
  type Resources,
  type Stores,
  workspacesFolder,
} from '../process/resources.ts';
import { type DiskState, DiskWatch } from './disk-watch.ts';
import { runExtraction } from './extraction.ts';
import { PutBackDownloads } from './put-back.ts';
import type { WorkerServices } from './step.ts';
import { consumeTurns } from './transcripts.ts';

interface WorkerProcess {
  /** `low`: no jobs are taken until there is room. */
  readonly diskState: () => DiskState;
  /** Resolves when this worker takes no jobs any more although jobs wait; nothing mends that but another process. */
  readonly deaf: Promise<void>;
  /** Stops taking jobs, lets running ones finish for `graceMs`, then hands them back. */
  close(graceMs: number): Promise<void>;
}

/** Keys and hosts have fewer each, so that this is reached by many of them alone (src/jobs/try-places.ts). */
const WEBHOOKS_AT_A_TIME = 500;
const SWEEP_EVERY_MS = 60 * 1000;
const LEFTOVERS_EVERY_MS = 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** @param ports those of the API and the gateway where they are known */
export async function startWorker(
  resources: Resources,
  stores: Stores,
  ports: { readonly api?: number; readonly gateway?: number } = {},
): Promise<WorkerProcess> {
  const { config, logger, secrets, storage, outbound, metrics } = resources;
  const { tracing, telemetry } = resources.traces;
  const { observer } = metrics;
  const tools = await resources.tools();
  const redis = connectRedis({ ...resources.redisAddress, role: 'worker', logger });
  const workspaces = await Workspaces.open(workspacesFolder(config), endStrayTools);
  const queues = openQueues(stores.redis, logger);
  const encoding = new Semaphore(config.WORKER_CONCURRENCY);
  const services: WorkerServices = {
    outbound,
    storage,
    insist: (signal, work) => resources.storageWatch.insist(signal, work),
    disk: resources.disk.workspaces,
    tools,
    logger,
    observer,
    tracing,
    encoding,
    putBack: new PutBackDownloads(join(workspaces.folder, 'put-back')),
    charge(tenant, seconds) {
      observer.keyCharged(tenant, seconds);
      const perMinute = config.CPU_SECONDS_PER_MINUTE;
      if (perMinute === undefined) return;
      void chargeProcessor(redis, tenant, seconds, perMinute).catch((error: Error) =>
        logger.warn({ error: error.message }, 'the processor time of a job could not be noted'),
      );
    },
    // An estimate is not worth a failed job.
    noteSeconds: (seconds) =>
      void noteJobSeconds(redis, seconds).catch((error: Error) =>
        logger.warn({ error: error.message }, 'the duration of a job could not be noted'),
      ),
    limits: {
      maxInputBytes: config.MAX_INPUT_BYTES,
      maxAudioSeconds: config.MAX_AUDIO_SECONDS,
      outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
    },
  };
  const readJob = (jobId: string) => findJobRecord(redis, jobId);
  const registry = new WorkerRegistry({ redis: stores.redis, queues, logger });

  const extractions = consumeExtractions({
    redis,
    concurrency: config.WORKER_CONCURRENCY + config.DOWNLOADS_AHEAD,
    lockSeconds: config.JOB_LOCK_SECONDS,
    registry,
    logger,
    observer,
    telemetry,
    queue: queues.extract,
    patienceSeconds: config.WATCHDOG_SECONDS === 0 ? undefined : config.WATCHDOG_SECONDS,
    async run(job) {
      const result = await runExtraction(job, services, workspaces);
      for (const { format, size, duration } of filesOf(result)) observer.outputMade(format, size, duration);
      return result;
    },
  });

  const diskWatch = await DiskWatch.start({
    spaces: [...new Set(Object.values(resources.disk))],
    consumer: extractions,
    logger,
  });

  const { storageWatch } = resources;
  const onStorageDown = (): void => extractions.pause('storage');
  const onStorageUp = (): void => extractions.resume('storage');
  storageWatch.on('down', onStorageDown).on('up', onStorageUp);
  if (storageWatch.state === 'down') onStorageDown();

  const announcing = { redis, recordSeconds: config.JOB_TTL_SECONDS, logger, telemetry };
  const voices = new VoiceQueue(announcing);
  const destinations = new DestinationQueue(announcing);
  const webhooks = new JobWebhooks({ ...announcing, tries: config.WEBHOOK_SCHEDULE_SECONDS.length });
  const transcripts = new TranscriptQueue(announcing);
  const signer = new UrlSigner(secrets.urlSigning, publicUrlOf(config, ports.api));
  const kind = jobWebhookKind({
    outbound,
    readJob,
    secretsOf: (tenant) => stores.webhookSecrets.of(tenant),
    signer,
    scheduleSeconds: config.WEBHOOK_SCHEDULE_SECONDS,
    logSeconds: config.JOB_TTL_SECONDS,
    observer,
    tracing,
  });
  const deliveries = await DeliveryWorker.start({
    queue: webhooks.queue,
    redis,
    kindOf: () => kind,
    isAlone: false,
    concurrency: WEBHOOKS_AT_A_TIME,
    lockSeconds: config.JOB_LOCK_SECONDS,
    registry,
    logger,
    telemetry,
  });
  const announcements = consumeAnnouncements({
    redis,
    addWebhook: (payload) => webhooks.add(payload),
    voices,
    destinations,
    transcripts,
    lockSeconds: config.JOB_LOCK_SECONDS,
    registry,
    logger,
    telemetry,
    sendVoice: (payload, attempt) =>
      deliverVoice(payload, attempt, {
        redis,
        storage,
        signer,
        gateway: {
          url: config.GATEWAY_URL ?? `http://127.0.0.1:${ports.gateway ?? config.GATEWAY_PORT}`,
          kind: config.GATEWAY_KIND,
          brand: config.GATEWAY_BRAND,
          apiKey: config.GATEWAY_API_KEY ?? secrets.gatewayApiKey,
        },
        onUnknown: config.VOICE_ON_UNKNOWN,
        workspaces,
        keepStatusSeconds: config.JOB_TTL_SECONDS,
        logger,
        readJob,
        observer,
        tracing,
      }),
  });

  const sealer = new Sealer(secrets.encryption);
  const puts = consumeDestinations({
    redis,
    addWebhook: (payload) => webhooks.add(payload),
    destinations,
    lockSeconds: config.JOB_LOCK_SECONDS,
    registry,
    logger,
    telemetry,
    put: (payload, attempt, signal) =>
      putToDestination(
        payload,
        attempt,
        { ...services, sealer, readJob, isErased: (jobId) => isErased(redis, jobId) },
        signal,
      ),
  });

  const transcriber = config.TRANSCRIBER_URL;
  const turns = consumeTurns({
    redis,
    addWebhook: (payload) => webhooks.add(payload),
    transcripts,
    destinations,
    scheduleSeconds: config.WEBHOOK_SCHEDULE_SECONDS,
    parts: config.TRANSCRIBER_PARTS,
    partMs: config.TRANSCRIBER_TIMEOUT_SECONDS * 1000,
    transcriber:
      transcriber === undefined
        ? undefined
        : {
            url: transcriber,
            apiKey: config.TRANSCRIBER_API_KEY,
            model: config.TRANSCRIBER_MODEL,
            timeoutMs: config.TRANSCRIBER_TIMEOUT_SECONDS * 1000,
          },
    storage,
    insist: services.insist,
    workspaces,
    outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
    readJob,
    lockSeconds: config.JOB_LOCK_SECONDS,
    registry,
    logger,
    observer,
    tracing,
    telemetry,
  });

  metrics.read({
    queues: () => readQueues(stores.redis, queues),
    worker: () => ({
      busy: encoding.capacity - encoding.free,
      places: encoding.capacity,
      diskLow: diskWatch.state === 'low',
    }),
  });
  const janitor = janitorOf(resources, stores.redis);
  janitor.start(SWEEP_EVERY_MS);
  return {
    deaf: extractions.deaf,
    diskState: () => diskWatch.state,
    async close(graceMs) {
      await janitor.close();
      diskWatch.close();
      storageWatch.off('down', onStorageDown).off('up', onStorageUp);
      await Promise.all([
        extractions.close(graceMs),
        announcements.close(graceMs),
        turns.close(graceMs),
        deliveries.close(graceMs),
        puts.close(graceMs),
      ]);
      await registry.close();
      await Promise.all([webhooks.close(), voices.close(), transcripts.close(), destinations.close()]);
      await workspaces.close();
      await closeQueues(queues);
      await closeRedis(redis);
    },
  };
}

function janitorOf(resources: Resources, redis: Redis): Janitor {
  const { config, storage, logger } = resources;
  const incoming = resources.incoming?.({
    states: new IncomingStates(redis),
    inTime: (_operation, work) => work,
    keyOf: uploadStorageKey,
  });
  return new Janitor({
    redis,
    outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
    jobTtlSeconds: config.JOB_TTL_SECONDS,
    removeObject: (key) => storage.remove(key),
    async removeUpload(file) {
      await (incoming?.remove(file) ?? rm(join(incomingFolder(config), file), { force: true }));
      await storage.remove(uploadStorageKey(file));
    },
    sweepStorage: leftoversSweep(resources),
    logger,
  });
}

/** Now and then: what dead writers have left is old before anybody may touch it. */
function leftoversSweep({ sweep, config }: Resources): (() => Promise<number>) | undefined {
  if (sweep === undefined) {
    return undefined;
  }
  // Whatever is written longer than that has expired before it was complete.
  const olderThanMs = DAY_MS + Math.max(DAY_MS, config.UPLOAD_TTL_SECONDS * 1000);
  let nextMs = 0;
  return async () => {
    if (Date.now() < nextMs) {
      return 0;
    }
    nextMs = Date.now() + LEFTOVERS_EVERY_MS;
    return sweep(olderThanMs);
  };
}
