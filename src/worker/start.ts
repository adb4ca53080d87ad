/** The worker process: runs jobs and their follow-ups, cleans up, closes. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { heldKeys } from 'soundpost-kit/observe/held-keys';
import type { Probe } from 'soundpost-kit/observe/probes';
import { redisNow } from 'soundpost-kit/redis/clock';
import { closeRedis, connectRedis, type Redis } from 'soundpost-kit/redis/connection';
import { Sealer } from 'soundpost-kit/signing/sealer';
import type { Workspaces } from 'soundpost-kit/storage/workspaces';
import { consumeExtractions } from '../jobs/extraction-consumer.ts';
import { Janitor } from '../jobs/janitor/janitor.ts';
import { closeQueues, openQueues, type Queues, readQueues } from '../jobs/open-queue.ts';
import { noteJobSeconds } from '../jobs/outlook.ts';
import { filesOf } from '../jobs/payloads.ts';
import { chargeProcessor } from '../jobs/reservation.ts';
import { Semaphore } from '../jobs/semaphore.ts';
import { StreamRequests } from '../jobs/stream-requests.ts';
import { IncomingStates, uploadStorageKey } from '../jobs/uploads/record.ts';
import { WorkerRegistry } from '../jobs/worker-registry.ts';
import { incomingFolder, type Resources, type Stores } from '../process/resources.ts';
import { removeUnnamed, shelvesOf } from '../process/shelves.ts';
import { runExtraction } from './extraction.ts';
import { consumeFollowUps } from './followups.ts';
import type { WorkerServices } from './step.ts';

interface WorkerProcess {
  /** Stops taking jobs, lets running ones finish for `graceMs`, then hands them back. */
  close(graceMs: number): Promise<void>;
}

const SWEEP_EVERY_MS = 60 * 1000;
const LEFTOVERS_EVERY_MS = 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** @param ports of the API and the gateway, where known */
export async function startWorker(
  resources: Resources,
  stores: Stores,
  ports: { readonly api?: number; readonly gateway?: number } = {},
): Promise<WorkerProcess> {
  const { logger, metrics, probes } = resources;
  // Before anything is opened: throws where ffmpeg is missing or cannot be confined.
  await resources.tools();
  const redis = connectRedis({ ...resources.redisAddress, role: 'worker', logger });
  const workspaces = await resources.workspaces();
  await workspaces.sweep();
  const queues = openQueues(stores.redis, logger);
  const registry = new WorkerRegistry({ redis: stores.redis, queues, logger });
  probes.add('disk', diskProbe(resources));
  await probes.ask('disk');
  const followUps = await consumeFollowUps({ resources, stores, redis, registry, workspaces, ports });
  const { hearEarly } = followUps;
  const services = { ...(await servicesOf(resources, redis)), hearEarly };
  const extractions = extractionsOf({ resources, redis, workspaces, queues, registry, services });
  const janitor = janitorOf(resources, stores.redis);
  janitor.start(SWEEP_EVERY_MS);

  const { encoding } = services;
  metrics.read({
    queues: () => readQueues(stores.redis, queues),
    worker: () => ({ busy: encoding.capacity - encoding.free, places: encoding.capacity }),
  });
  return {
    async close(graceMs) {
      await janitor.close();
      await probes.close('disk');
      await Promise.all([extractions.close(graceMs), followUps.close(graceMs)]);
      await registry.close();
      await closeQueues(queues);
      await closeRedis(redis);
    },
  };
}

/** What the steps of an extraction need. */
async function servicesOf(resources: Resources, redis: Redis): Promise<WorkerServices> {
  const { config, logger, storage, outbound, metrics, storageWatch } = resources;
  const { observer } = metrics;
  const noteHeld = heldKeys(logger, observer);
  return {
    outbound,
    storage,
    retryUntilUp: (signal, work) => storageWatch.retryUntilUp(signal, work),
    disk: resources.disk.workspaces,
    tools: await resources.tools(),
    sealer: new Sealer(resources.secrets.encryption),
    logger,
    observer,
    tracing: resources.traces.tracing,
    encoding: new Semaphore(config.WORKER_CONCURRENCY, config.WORKER_CONCURRENCY),
    streamRequests: new StreamRequests({
      redis,
      onHeld: ({ key, host }) => noteHeld(key, 'stream_requests', { host }),
    }),
    async charge(tenant, seconds) {
      if (seconds > 0) observer.keyCharged(tenant, seconds);
      const perMinute = config.CPU_SECONDS_PER_MINUTE;
      if (perMinute === undefined) return false;
      try {
        const isOver = await chargeProcessor(redis, tenant, seconds, perMinute);
        if (isOver) noteHeld(tenant, 'processor_seconds');
        return isOver;
      } catch (error) {
        logger.warn({ error: String(error) }, 'the processor time of a job could not be noted');
        return false;
      }
    },
    // A failed estimate must not fail the job.
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
}

interface ExtractionParts {
  readonly resources: Resources;
  readonly redis: Redis;
  readonly workspaces: Workspaces;
  readonly queues: Queues;
  readonly registry: WorkerRegistry;
  readonly services: WorkerServices;
}

function extractionsOf({ resources, redis, workspaces, queues, registry, services }: ExtractionParts) {
  const { config, logger, metrics, traces, probes } = resources;
  const { observer } = metrics;
  return consumeExtractions({
    redis,
    concurrency: config.WORKER_CONCURRENCY + config.DOWNLOADS_AHEAD,
    lockSeconds: config.JOB_LOCK_SECONDS,
    registry,
    probes,
    logger,
    observer,
    telemetry: traces.telemetry,
    queue: queues.extract,
    patienceSeconds: config.WATCHDOG_SECONDS === 0 ? undefined : config.WATCHDOG_SECONDS,
    async run(job) {
      const result = await runExtraction(job, services, workspaces);
      for (const { format, size, duration } of filesOf(result)) observer.outputMade(format, size, duration);
      return result;
    },
  });
}

/** Whether the disk has room for more jobs; if not, they stay queued instead of failing. */
function diskProbe({ disk, probes }: Resources): Probe<'disk'> {
  const spaces = [...new Set(Object.values(disk))];
  return {
    // Throws where a volume does not answer: the jobs that need it fail and are retried.
    async ask() {
      const low = await Promise.all(spaces.map((space) => space.isLow(probes.isFailing('disk'))));
      return low.includes(true) ? 'low' : 'ok';
    },
    figures: () => ({ soundpost_worker_disk_low: probes.isFailing('disk') ? 1 : 0 }),
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
    sweepStorage: leftoversSweep(resources, redis),
    logger,
  });
}

/** Runs rarely: leftovers must be old before they can be removed. */
function leftoversSweep(
  { sweep, inventory, config }: Resources,
  redis: Redis,
): (proceed: () => Promise<void>) => Promise<number> {
  // Anything written for longer has expired before it was complete.
  const olderThanMs = DAY_MS + Math.max(DAY_MS, config.UPLOAD_TTL_SECONDS * 1000);
  let nextMs = 0;
  return async (proceed) => {
    if (Date.now() < nextMs) {
      return 0;
    }
    nextMs = Date.now() + LEFTOVERS_EVERY_MS;
    const unfinished = (await sweep?.(olderThanMs)) ?? 0;
    return unfinished + (await removeUnnamed(inventory, shelvesOf(config, redis), redisNow, proceed));
  };
}
