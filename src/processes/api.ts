/** The API: the configuration turned into the options that its parts declare. */
import { type ApiProcess, startApi } from '../api/start.ts';
import { IncomingFiles } from '../api/uploads/incoming-files.ts';
import { createAuditLog } from '../logger.ts';
import type { SandboxLevel } from '../media/sandbox.ts';
import { AnnouncementQueue } from '../queue/announcement-queue.ts';
import { JobChanges } from '../queue/job-changes.ts';
import { JobQueue } from '../queue/job-queue.ts';
import { closeRedis, connectRedis } from '../queue/redis.ts';
import { UrlSigner } from '../signing/signed-url.ts';
import { inTime, withDeadline } from '../storage/deadline.ts';
import type { Ground, Stores } from './ground.ts';
import { incomingFolder, publicUrlOf } from './places.ts';

/** A request may need two operations in a row, and is to be answered within 2 s. */
const STORAGE_DEADLINE_MS = 900;

/** @param sandbox how this process confines ffmpeg, where it runs it too */
export async function runApi(ground: Ground, stores: Stores, sandbox?: SandboxLevel): Promise<ApiProcess> {
  const { config, logger, secrets } = ground;
  const jobs = new JobQueue({
    redis: stores.redis,
    limits: {
      submitPerMinute: config.RATE_SUBMIT_PER_MINUTE,
      unfinishedPerTenant: config.UNFINISHED_PER_KEY,
      queueLimit: config.QUEUE_LIMIT,
    },
    recordSeconds: config.JOB_TTL_SECONDS,
    logger,
  });
  const announcements = new AnnouncementQueue({
    redis: stores.redis,
    webhookTries: config.WEBHOOK_SCHEDULE_SECONDS.length,
    recordSeconds: config.JOB_TTL_SECONDS,
    logger,
  });
  const watching = connectRedis({ url: ground.redisUrl, role: 'worker', logger });
  const changes = new JobChanges(watching, logger);
  const storage = withDeadline(ground.storage, STORAGE_DEADLINE_MS);
  const incoming = await IncomingFiles.open(incomingFolder(config), storage, (operation, work) =>
    inTime(operation, STORAGE_DEADLINE_MS, work),
  );
  const api = await startApi(config.HOST, config.API_PORT, (port) => ({
    redis: stores.redis,
    jobs,
    announcements,
    changes,
    keys: stores.keys,
    webhookSecrets: stores.webhookSecrets,
    storage,
    disk: ground.disk.files,
    incoming,
    outbound: ground.outbound,
    signer: new UrlSigner(secrets.urlSigning, publicUrlOf(config, port)),
    logger,
    audit: createAuditLog(logger),
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
      gatewayEventsSecret: secrets.gatewayEventsSecret,
      ...(sandbox === undefined ? {} : { sandbox }),
    },
  }));
  return {
    port: api.port,
    async close(graceMs) {
      changes.stop();
      await api.close(graceMs);
      await Promise.all([jobs.close(), announcements.close(), changes.close()]);
      await closeRedis(watching);
    },
  };
}
