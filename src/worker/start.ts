/** The worker process: wire, consume, close. */
import { consumeAnnouncements } from '../queue/announcement-consumer.ts';
import { AnnouncementQueue } from '../queue/announcement-queue.ts';
import { logAttempt } from '../queue/deliveries.ts';
import { consumeExtractions, type ExtractionConsumerOptions } from '../queue/extraction-consumer.ts';
import { readJobRecord } from '../queue/job-record.ts';
import { jobKey } from '../queue/names.ts';
import type { Redis } from '../queue/redis.ts';
import { Semaphore } from '../queue/semaphore.ts';
import { noteJobSeconds } from '../queue/throughput.ts';
import type { WebhookSecrets } from '../queue/webhook-secrets.ts';
import type { UrlSigner } from '../signing/signed-url.ts';
import type { DiskSpace } from '../storage/disk-space.ts';
import type { Workspaces } from '../storage/workspaces.ts';
import type { GatewaySettings } from './completion/gateway-client.ts';
import { deliverVoice } from './completion/voice.ts';
import { deliverWebhook } from './completion/webhook.ts';
import { webhookBody } from './completion/webhook-body.ts';
import { type DiskState, DiskWatch } from './disk-watch.ts';
import { runExtraction } from './extraction.ts';
import type { WorkerServices } from './step.ts';

export interface WorkerOptions {
  readonly services: Omit<WorkerServices, 'encoding'>;
  /** A connection of the role `worker`. The caller closes it. */
  readonly redis: Redis;
  /** Keeps the context of traces in jobs. */
  readonly telemetry?: ExtractionConsumerOptions['telemetry'];
  readonly signer: UrlSigner;
  readonly webhookSecrets: WebhookSecrets;
  readonly gateway: GatewaySettings;
  readonly voiceOnUnknown: 'keep' | 'resend';
  readonly webhookSchedule: readonly number[];
  /** Jobs that are encoded at a time. */
  readonly encodings: number;
  /** Jobs that are downloaded, or wait downloaded, beside those. 0: what is downloaded is encoded at once. */
  readonly downloadsAhead: number;
  readonly lockSeconds: number;
  /** Whether, and with what patience, it is watched that jobs are taken at all; `redis` is of the role `request`. */
  readonly watch?: { readonly redis: Redis; readonly patienceSeconds: number };
  /** How long the record of an ended job is kept. */
  readonly jobTtlSeconds: number;
  readonly workspaces: Workspaces;
  /** Volumes that need room before jobs are taken. */
  readonly disks: readonly DiskSpace[];
}

export interface WorkerProcess {
  /** Places among the encoders: those that are taken, and all. */
  readonly places: () => { readonly busy: number; readonly places: number };
  /** `low`: no jobs are taken until there is room. */
  readonly diskState: () => DiskState;
  /** Resolves when this worker takes no jobs any more although jobs wait; nothing mends that but another process. */
  readonly deaf: Promise<void>;
  /** Stops taking jobs, lets running ones finish for `graceMs`, then hands them back. */
  close(graceMs: number): Promise<void>;
}

export async function startWorker(options: WorkerOptions): Promise<WorkerProcess> {
  const { redis, signer, workspaces, telemetry } = options;
  const services = { ...options.services, encoding: new Semaphore(options.encodings) };
  const { logger, observer, tracing } = services;
  const observing = { ...(observer && { observer }), ...(tracing && { tracing }) };
  const readJob = async (jobId: string) =>
    readJobRecord(jobId, await redis.hgetall(jobKey('extract', jobId)));

  const extractions = consumeExtractions({
    redis,
    concurrency: options.encodings + options.downloadsAhead,
    lockSeconds: options.lockSeconds,
    logger,
    ...(options.watch === undefined ? {} : { watch: options.watch }),
    ...(observer && { observer }),
    telemetry,
    async run(job) {
      const startedMs = Date.now();
      const result = await runExtraction(job, services, workspaces);
      const { format, size, duration } = result.outputFile;
      services.observer?.outputMade(format, size, duration);
      // An estimate is not worth a failed job.
      noteJobSeconds(redis, (Date.now() - startedMs) / 1000).catch((error: Error) =>
        logger.warn({ error: error.message }, 'the duration of a job could not be noted'),
      );
      return result;
    },
  });

  const diskWatch = await DiskWatch.start({ spaces: options.disks, consumer: extractions, logger });

  const announcementQueue = new AnnouncementQueue({
    redis,
    webhookTries: options.webhookSchedule.length,
    recordSeconds: options.jobTtlSeconds,
    logger,
    telemetry,
  });
  const announcements = consumeAnnouncements({
    redis,
    queue: announcementQueue,
    webhookSchedule: options.webhookSchedule,
    lockSeconds: options.lockSeconds,
    logger,
    telemetry,
    handlers: {
      webhook: (payload, attempt) =>
        deliverWebhook(payload, attempt, {
          outbound: services.outbound,
          logger,
          readJob,
          secretsOf: (tenant) => options.webhookSecrets.of(tenant),
          bodyOf: (event, record) => webhookBody(event, record, signer),
          logAttempt: (id, made) => logAttempt(redis, id, made, options.jobTtlSeconds),
          ...observing,
        }),
      voice: (payload, attempt) =>
        deliverVoice(payload, attempt, {
          redis,
          storage: services.storage,
          signer,
          gateway: options.gateway,
          onUnknown: options.voiceOnUnknown,
          workspaces,
          keepStatusSeconds: options.jobTtlSeconds,
          logger,
          readJob,
          ...observing,
        }),
    },
  });

  return {
    deaf: extractions.deaf,
    diskState: () => diskWatch.state,
    places: () => ({
      busy: services.encoding.capacity - services.encoding.free,
      places: services.encoding.capacity,
    }),
    async close(graceMs) {
      diskWatch.close();
      await Promise.all([extractions.close(graceMs), announcements.close(graceMs)]);
      await announcementQueue.close();
    },
  };
}
