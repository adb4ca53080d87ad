/** The API: the configuration turned into the options that its parts declare. */
import type { ApiServices } from '../api/route.ts';
import { type ApiProcess, startApi } from '../api/start.ts';
import { IncomingFiles } from '../api/uploads/incoming-files.ts';
import type { Board } from '../board/board.ts';
import type { Config } from '../config.ts';
import { type AuditLog, createAuditLog } from '../logger.ts';
import type { SandboxLevel } from '../media/sandbox.ts';
import { AnnouncementQueue } from '../queue/announcement-queue.ts';
import { IncomingStates } from '../queue/incoming-states.ts';
import { JobChanges } from '../queue/job-changes.ts';
import { JobQueue } from '../queue/job-queue.ts';
import { readQueues } from '../queue/queue-state.ts';
import { closeRedis, connectRedis } from '../queue/redis.ts';
import { Replication } from '../queue/replication.ts';
import { uploadStorageKey } from '../queue/uploads.ts';
import { UrlSigner } from '../signing/signed-url.ts';
import { inTime, withDeadline } from '../storage/deadline.ts';
import type { InTime } from '../storage/incoming.ts';
import type { Ground, Stores } from './ground.ts';
import { incomingFolder, publicUrlOf } from './places.ts';
import { seenAs } from './seeing.ts';

/** A request may need two operations in a row, and is to be answered within 2 s. */
const STORAGE_DEADLINE_MS = 900;

/** @param sandbox how this process confines ffmpeg, where it runs it too */
export async function runApi(ground: Ground, stores: Stores, sandbox?: SandboxLevel): Promise<ApiProcess> {
  const { config, logger, secrets } = ground;
  const { telemetry } = ground.traces;
  const confirming =
    config.REDIS_WAIT_REPLICAS > 0
      ? connectRedis({ ...ground.redisAddress, role: 'request', logger })
      : undefined;
  const jobs = new JobQueue({
    replication: confirming && new Replication({ redis: confirming, replicas: config.REDIS_WAIT_REPLICAS }),
    redis: stores.redis,
    limits: {
      submitPerMinute: config.RATE_SUBMIT_PER_MINUTE,
      unfinishedPerTenant: config.UNFINISHED_PER_KEY,
      queueLimit: config.QUEUE_LIMIT,
    },
    recordSeconds: config.JOB_TTL_SECONDS,
    logger,
    observer: ground.metrics.observer,
    telemetry,
  });
  const announcements = new AnnouncementQueue({
    redis: stores.redis,
    webhookTries: config.WEBHOOK_SCHEDULE_SECONDS.length,
    recordSeconds: config.JOB_TTL_SECONDS,
    logger,
    telemetry,
  });
  const watching = connectRedis({ ...ground.redisAddress, role: 'worker', logger });
  const changes = new JobChanges(watching, logger);
  const storage = withDeadline(ground.storage, STORAGE_DEADLINE_MS);
  const timed: InTime = (operation, work) => inTime(operation, STORAGE_DEADLINE_MS, work);
  const incoming =
    ground.incoming?.({
      states: new IncomingStates(stores.redis),
      inTime: timed,
      keyOf: uploadStorageKey,
    }) ?? (await IncomingFiles.open(incomingFolder(config), storage, timed));
  ground.metrics.read({ queues: () => readQueues(stores.redis) });
  const audit = createAuditLog(logger);
  const board = await boardOf(ground, stores, audit);
  const wire = (port: number): ApiServices => ({
    redis: stores.redis,
    jobs,
    announcements,
    changes,
    keys: stores.keys,
    webhookSecrets: stores.webhookSecrets,
    storage,
    downloadAddress: ground.downloadAddress,
    disk: ground.disk.files,
    incoming,
    outbound: ground.outbound,
    signer: new UrlSigner(secrets.urlSigning, publicUrlOf(config, port)),
    logger,
    audit,
    settings: {
      publicUrl: publicUrlOf(config, port),
      readPerMinute: config.RATE_READ_PER_MINUTE,
      submitPerMinute: config.RATE_SUBMIT_PER_MINUTE,
      unfinishedPerKey: config.UNFINISHED_PER_KEY,
      maxInputBytes: config.MAX_INPUT_BYTES,
      uploadTtlSeconds: config.UPLOAD_TTL_SECONDS,
      outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
      jobTtlSeconds: config.JOB_TTL_SECONDS,
      workerConcurrency: config.WORKER_CONCURRENCY,
      trustProxy: config.TRUST_PROXY,
      corsOrigins: config.CORS_ORIGINS,
      ...(config.CONSOLE === 'on' ? { console: { downloadOrigins: downloadOriginsOf(config) } } : {}),
      gatewayEventsSecret: secrets.gatewayEventsSecret,
      ...(sandbox === undefined ? {} : { sandbox }),
    },
  });
  const api = await startApi(config.HOST, config.API_PORT, wire, (handler) =>
    seenAs('api', ground)(board?.before(handler) ?? handler),
  );
  return {
    port: api.port,
    async close(graceMs) {
      changes.stop();
      await api.close(graceMs);
      await Promise.all([jobs.close(), announcements.close(), changes.close(), board?.close()]);
      await Promise.all([closeRedis(watching), confirming && closeRedis(confirming)]);
    },
  };
}

/** Of the bucket that downloads are led to: its name is a part of the path, or of the host (Amazon S3 User Guide, "Virtual hosting of buckets"). */
function downloadOriginsOf({ S3_PUBLIC_ENDPOINT, STORAGE_URL }: Config): string[] {
  if (S3_PUBLIC_ENDPOINT === undefined || STORAGE_URL === undefined) {
    return [];
  }
  const { origin, protocol, host } = new URL(S3_PUBLIC_ENDPOINT);
  return [origin, `${protocol}//${STORAGE_URL.bucket}.${host}`];
}

/** Loaded only where somebody may look at it. */
async function boardOf(
  { config, logger }: Ground,
  { redis }: Stores,
  audit: AuditLog,
): Promise<Board | undefined> {
  if (config.ADMIN_KEY === undefined) {
    return undefined;
  }
  const { openBoard } = await import('../board/board.ts');
  return openBoard({ redis, key: config.ADMIN_KEY, trustProxy: config.TRUST_PROXY, audit, logger });
}
