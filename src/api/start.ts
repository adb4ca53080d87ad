/** The API process: wires it from the configuration, listens, closes. */

import { type Listener, listen } from 'soundpost-kit/http/listener';
import { type AuditLog, createAuditLog } from 'soundpost-kit/observe/logger';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { Replication } from 'soundpost-kit/redis/replication';
import { Sealer } from 'soundpost-kit/signing/sealer';
import { UrlSigner } from 'soundpost-kit/signing/signatures';
import { watchedInTime, withDeadline } from 'soundpost-kit/storage/deadline';
import type { SandboxLevel } from 'soundpost-media/sandbox';
import { JobFollowUps } from '../followups/job-followups.ts';
import { JobChanges } from '../jobs/job-changes.ts';
import { JobQueue } from '../jobs/job-queue.ts';
import { closeQueues, openQueues, type Queues, readQueues } from '../jobs/open-queue.ts';
import { holdUpload, IncomingStates, uploadStorageKey } from '../jobs/uploads/record.ts';
import type { Config } from '../process/config.ts';
import { incomingFolder, observed, publicUrlOf, type Resources, type Stores } from '../process/resources.ts';
import { createApp } from './app.ts';
import { SharedReads } from './event-streams.ts';
import type { ApiServices } from './route.ts';
import { IncomingFiles } from './uploads/incoming-files.ts';

interface ApiProcess extends Pick<Listener, 'close'> {
  readonly port: number;
}

/** Rejects if the port is in use. @param sandbox confines ffmpeg, if it runs in this process */
export async function startApi(
  resources: Resources,
  stores: Stores,
  sandbox?: SandboxLevel,
): Promise<ApiProcess> {
  const { config, logger, secrets } = resources;
  const { telemetry } = resources.traces;
  const confirming =
    config.REDIS_WAIT_REPLICAS > 0
      ? connectRedis({ ...resources.redisAddress, role: 'request', logger })
      : undefined;
  const jobs = jobQueue(resources, stores, confirming);
  const followUps = new JobFollowUps({
    redis: stores.redis,
    recordSeconds: config.JOB_TTL_SECONDS,
    webhookTries: config.WEBHOOK_SCHEDULE_SECONDS.length,
    logger,
    telemetry,
  });
  const watching = connectRedis({ ...resources.redisAddress, role: 'worker', logger });
  const changes = new JobChanges(watching, logger);
  const { storageWatch } = resources;
  const storageDeadlineMs = config.STORAGE_DEADLINE_SECONDS * 1000;
  const storage = withDeadline(resources.storage, storageDeadlineMs, storageWatch);
  const timed = watchedInTime(storageDeadlineMs, storageWatch);
  const incoming =
    resources.incoming?.({
      states: new IncomingStates(stores.redis),
      inTime: timed,
      keyOf: uploadStorageKey,
    }) ?? (await IncomingFiles.open(incomingFolder(config), storage, timed));
  const queues = openQueues(stores.redis, logger);
  resources.metrics.read({ queues: () => readQueues(stores.redis, queues) });
  const audit = createAuditLog(logger);
  const board = await boardOf(resources, stores, queues, audit);
  const wire = (port: number): ApiServices => ({
    redis: stores.redis,
    probes: resources.probes,
    jobs,
    followUps,
    changes,
    watchedJobs: new SharedReads(),
    keys: stores.keys,
    sessions: stores.sessions,
    webhookSecrets: stores.webhookSecrets,
    storage,
    downloadAddress: resources.downloadAddress,
    disk: resources.disk.files,
    incoming,
    outbound: resources.outbound,
    sealer: new Sealer(secrets.encryption),
    signer: new UrlSigner(secrets.urlSigning, publicUrlOf(config, port)),
    logger,
    audit,
    observer: resources.metrics.observer,
    settings: settingsOf(resources, port, sandbox),
  });
  const api = await listen(config.HOST, config.API_PORT, ({ port }) => {
    const app = createApp(wire(port));
    return observed('api', resources)(board?.before(app) ?? app);
  });
  return {
    port: api.address.port,
    async close(graceMs) {
      changes.stop();
      await api.close(graceMs);
      await Promise.all([jobs.close(), followUps.close(), changes.close()]);
      await closeQueues(queues);
      await Promise.all([closeRedis(watching), confirming && closeRedis(confirming)]);
    },
  };
}

function jobQueue(
  { config, logger, metrics, traces }: Resources,
  { redis }: Stores,
  confirming: Redis | undefined,
): JobQueue {
  return new JobQueue({
    replication: confirming && new Replication({ redis: confirming, replicas: config.REDIS_WAIT_REPLICAS }),
    redis,
    holdUpload: (file, jobId) => holdUpload(redis, file, jobId),
    limits: {
      submitPerMinute: config.RATE_SUBMIT_PER_MINUTE,
      unfinishedPerTenant: config.UNFINISHED_PER_KEY,
      queueLimit: config.QUEUE_LIMIT,
    },
    recordSeconds: config.JOB_TTL_SECONDS,
    logger,
    observer: metrics.observer,
    telemetry: traces.telemetry,
  });
}

function settingsOf(
  { config, secrets }: Resources,
  port: number,
  sandbox: SandboxLevel | undefined,
): ApiServices['settings'] {
  return {
    publicUrl: publicUrlOf(config, port),
    readPerMinute: config.RATE_READ_PER_MINUTE,
    submitPerMinute: config.RATE_SUBMIT_PER_MINUTE,
    unfinishedPerKey: config.UNFINISHED_PER_KEY,
    eventStreamsPerKey: config.EVENT_STREAMS_PER_KEY,
    uploadsPerKey: config.UPLOADS_PER_KEY,
    uploadBytesPerKey: config.UPLOAD_BYTES_PER_KEY,
    transcriptMinutesPerDay: config.TRANSCRIPT_MINUTES_PER_DAY,
    processorPerMinute: config.CPU_SECONDS_PER_MINUTE,
    maxInputBytes: config.MAX_INPUT_BYTES,
    uploadTtlSeconds: config.UPLOAD_TTL_SECONDS,
    outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
    jobTtlSeconds: config.JOB_TTL_SECONDS,
    workerConcurrency: config.WORKER_CONCURRENCY,
    downloadsAhead: config.DOWNLOADS_AHEAD,
    trustProxy: config.TRUST_PROXY,
    corsOrigins: config.CORS_ORIGINS,
    ...(config.CONSOLE === 'on'
      ? {
          console: {
            downloadOrigins: downloadOriginsOf(config),
            gatewayUrl: gatewayUrlOf(config),
            hasTranscriber: config.TRANSCRIBER_URL !== undefined,
          },
        }
      : {}),
    gatewayEventsSecret: secrets.gatewayEventsSecret,
    gatewayKind: config.GATEWAY_KIND,
    gatewayEventsToken: config.GATEWAY_EVENTS_TOKEN,
    hasTranscriber: config.TRANSCRIBER_URL !== undefined,
    transcriberModel: config.TRANSCRIBER_MODEL,
    ...(sandbox === undefined ? {} : { sandbox }),
  };
}

/** With the bucket in the path or the host (Amazon S3 User Guide, "Virtual hosting of buckets"). */
function downloadOriginsOf({ S3_PUBLIC_ENDPOINT, STORAGE_URL }: Config): string[] {
  if (S3_PUBLIC_ENDPOINT === undefined || STORAGE_URL === undefined) {
    return [];
  }
  const { origin, protocol, host } = new URL(S3_PUBLIC_ENDPOINT);
  return [origin, `${protocol}//${STORAGE_URL.bucket}.${host}`];
}

/** The gateway's public URL, if it is ours and its port is known before it listens. */
function gatewayUrlOf({ GATEWAY_KIND, GATEWAY_PUBLIC_URL, GATEWAY_PORT }: Config): string | undefined {
  if (GATEWAY_KIND !== 'soundpost') return undefined;
  return GATEWAY_PUBLIC_URL ?? (GATEWAY_PORT === 0 ? undefined : `http://127.0.0.1:${GATEWAY_PORT}`);
}

/** Loaded only if ADMIN_KEY is set. */
async function boardOf({ config, logger }: Resources, { redis }: Stores, queues: Queues, audit: AuditLog) {
  if (config.ADMIN_KEY === undefined) {
    return undefined;
  }
  const { openBoard } = await import('./board/board.ts');
  return openBoard({ redis, queues, key: config.ADMIN_KEY, trustProxy: config.TRUST_PROXY, audit, logger });
}
