/** The worker and its janitor: the configuration turned into the options that their parts declare. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { endStrayTools } from '../media/stray-tools.ts';
import { IncomingStates } from '../queue/incoming-states.ts';
import { Janitor } from '../queue/janitor.ts';
import { readQueues } from '../queue/queue-state.ts';
import { closeRedis, connectRedis } from '../queue/redis.ts';
import { uploadStorageKey } from '../queue/uploads.ts';
import { UrlSigner } from '../signing/signed-url.ts';
import { Workspaces } from '../storage/workspaces.ts';
import { startWorker, type WorkerProcess } from '../worker/start.ts';
import type { Ground, Stores } from './ground.ts';
import { incomingFolder, publicUrlOf, workspacesFolder } from './places.ts';

const SWEEP_EVERY_MS = 60 * 1000;
const LEFTOVERS_EVERY_MS = 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** @param ports those of the API and the gateway where they are known */
export async function runWorker(
  ground: Ground,
  stores: Stores,
  ports: { readonly api?: number; readonly gateway?: number } = {},
): Promise<WorkerProcess> {
  const { config, logger, secrets } = ground;
  const tools = await ground.tools();
  const redis = connectRedis({ ...ground.redisAddress, role: 'worker', logger });
  const workspaces = await Workspaces.open(workspacesFolder(config), endStrayTools);
  const worker = await startWorker({
    services: {
      outbound: ground.outbound,
      storage: ground.storage,
      disk: ground.disk.workspaces,
      tools,
      logger,
      observer: ground.metrics.observer,
      tracing: ground.traces.tracing,
      limits: {
        maxInputBytes: config.MAX_INPUT_BYTES,
        maxAudioSeconds: config.MAX_AUDIO_SECONDS,
        outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
      },
    },
    redis,
    telemetry: ground.traces.telemetry,
    signer: new UrlSigner(secrets.urlSigning, publicUrlOf(config, ports.api)),
    webhookSecrets: stores.webhookSecrets,
    gateway: {
      url: config.GATEWAY_URL ?? `http://127.0.0.1:${ports.gateway ?? config.GATEWAY_PORT}`,
      kind: config.GATEWAY_KIND,
      brand: config.GATEWAY_BRAND,
      apiKey: config.GATEWAY_API_KEY ?? secrets.gatewayApiKey,
    },
    voiceOnUnknown: config.VOICE_ON_UNKNOWN,
    webhookSchedule: config.WEBHOOK_SCHEDULE_SECONDS,
    encodings: config.WORKER_CONCURRENCY,
    downloadsAhead: config.DOWNLOADS_AHEAD,
    lockSeconds: config.JOB_LOCK_SECONDS,
    jobTtlSeconds: config.JOB_TTL_SECONDS,
    workspaces,
    disks: [...new Set(Object.values(ground.disk))],
    ...(config.WATCHDOG_SECONDS === 0
      ? {}
      : { watch: { redis: stores.redis, patienceSeconds: config.WATCHDOG_SECONDS } }),
  });
  ground.metrics.read({
    queues: () => readQueues(stores.redis),
    worker: () => ({ ...worker.places(), diskLow: worker.diskState() === 'low' }),
  });
  const incoming = ground.incoming?.({
    states: new IncomingStates(stores.redis),
    inTime: (_operation, work) => work,
    keyOf: uploadStorageKey,
  });
  const janitor = new Janitor({
    redis: stores.redis,
    outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
    jobTtlSeconds: config.JOB_TTL_SECONDS,
    removeObject: (key) => ground.storage.remove(key),
    async removeUpload(file) {
      await (incoming?.remove(file) ?? rm(join(incomingFolder(config), file), { force: true }));
      await ground.storage.remove(uploadStorageKey(file));
    },
    sweepStorage: leftoversSweep(ground),
    logger,
  });
  janitor.start(SWEEP_EVERY_MS);
  return {
    deaf: worker.deaf,
    diskState: worker.diskState,
    places: worker.places,
    async close(graceMs) {
      await janitor.close();
      await worker.close(graceMs);
      await workspaces.close();
      await closeRedis(redis);
    },
  };
}

/** Now and then: what dead writers have left is old before anybody may touch it. */
function leftoversSweep({ sweep, config }: Ground): (() => Promise<number>) | undefined {
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
