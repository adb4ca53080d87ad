/** What each process is made of: the configuration turned into the options that the parts declare. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type ApiProcess, startApi } from './api/start.ts';
import { IncomingFiles } from './api/uploads/incoming-files.ts';
import { type Config, ConfigurationError, searchPath } from './config.ts';
import { type RunningGateway, startGateway } from './gateway/start.ts';
import { dieWithParent } from './launcher.ts';
import { createLogger, type Logger } from './logger.ts';
import { detectSandbox } from './media/detect-sandbox.ts';
import type { MediaTools } from './media/run.ts';
import type { SandboxLevel } from './media/sandbox.ts';
import { parseAllowRules } from './outbound/allow-rules.ts';
import { createOutbound, type Outbound } from './outbound/outbound.ts';
import { AnnouncementQueue } from './queue/announcement-queue.ts';
import { ApiKeys } from './queue/api-keys.ts';
import { type EmbeddedRedis, startEmbeddedRedis } from './queue/embedded-redis.ts';
import { Janitor } from './queue/janitor.ts';
import { JobChanges } from './queue/job-changes.ts';
import { JobQueue } from './queue/job-queue.ts';
import { closeRedis, connectRedis, type Redis } from './queue/redis.ts';
import { uploadStorageKey } from './queue/uploads.ts';
import { WebhookSecrets } from './queue/webhook-secrets.ts';
import { type DerivedSecrets, deriveSecrets, machineSecretKey } from './secrets.ts';
import { UrlSigner } from './signing/signed-url.ts';
import { createFileStorage } from './storage/file-storage.ts';
import type { Storage } from './storage/storage.ts';
import { Workspaces } from './storage/workspaces.ts';
import { startWorker, type WorkerProcess } from './worker/start.ts';

const SWEEP_EVERY_MS = 60 * 1000;

/** What every process needs: secrets, Redis, storage, the way outside. */
export interface Ground {
  readonly config: Config;
  readonly logger: Logger;
  readonly secrets: DerivedSecrets;
  readonly redisUrl: string;
  readonly embeddedRedis: EmbeddedRedis | undefined;
  readonly storage: Storage;
  readonly outbound: Outbound;
  /** ffmpeg, and the sandbox for it, which is looked for when this is called first: not every process runs ffmpeg. */
  tools(): Promise<MediaTools>;
  close(): Promise<void>;
}

export async function openGround(config: Config): Promise<Ground> {
  const logger = createLogger(config.LOG_LEVEL);
  const secrets = deriveSecrets(config.SECRET_KEY ?? (await machineSecretKey(config.DATA_DIR)));
  const allow = parseAllowRules(config.OUTBOUND_ALLOW);
  if (config.OUTBOUND_ALLOW !== '') {
    logger.info(
      { allow: config.OUTBOUND_ALLOW },
      'these addresses may be reached although they are not public',
    );
  }
  const storage = await createFileStorage({ root: config.DATA_DIR });
  const outbound = createOutbound({ allow, ports: config.OUTBOUND_PORTS, logger, userAgent: 'Soundpost' });
  const embeddedRedis =
    config.REDIS_URL === undefined
      ? await startEmbeddedRedis({
          folder: join(config.DATA_DIR, 'redis'),
          launcher: dieWithParent('TERM', searchPath),
        })
      : undefined;
  let tools: Promise<MediaTools> | undefined;
  return {
    config,
    logger,
    secrets,
    redisUrl: config.REDIS_URL ?? embeddedRedis?.url ?? '',
    embeddedRedis,
    storage,
    outbound,
    tools() {
      tools ??= confinedTools(config, logger);
      return tools;
    },
    async close() {
      await outbound.close();
      await embeddedRedis?.close();
    },
  };
}

async function confinedTools({ SANDBOX }: Config, logger: Logger): Promise<MediaTools> {
  const tools = {
    ffmpegPath: 'ffmpeg',
    ffprobePath: 'ffprobe',
    launcher: dieWithParent('KILL', searchPath),
  };
  const sandbox = await detectSandbox(tools);
  if (sandbox.level === 'none') {
    const remedy =
      'ffmpeg cannot be confined here: install bubblewrap (apt-get install bubblewrap) beside ffmpeg; in a container, allow user namespaces too (docs/operations.md "Sandbox")';
    if (SANDBOX === 'required') throw new ConfigurationError(`SANDBOX=required, but ${remedy}`);
    logger.warn({ sandbox }, remedy);
  } else {
    logger.info({ sandbox }, 'ffmpeg is confined');
  }
  return { ...tools, sandbox };
}

/** The connection on which requests are answered, and the stores behind it. */
export interface Stores {
  readonly redis: Redis;
  readonly keys: ApiKeys;
  readonly webhookSecrets: WebhookSecrets;
  close(): Promise<void>;
}

export function openStores({ redisUrl, logger, secrets }: Ground): Stores {
  const redis = connectRedis({ url: redisUrl, role: 'request', logger });
  return {
    redis,
    keys: new ApiKeys(redis, secrets.keyPepper),
    webhookSecrets: new WebhookSecrets(redis, secrets.encryption),
    close: () => closeRedis(redis),
  };
}

/** Where answers and webhooks say that the API is. */
function publicUrlOf({ PUBLIC_URL, API_PORT }: Config, port = API_PORT): string {
  return PUBLIC_URL ?? `http://127.0.0.1:${port}`;
}

/** Where the bytes of unfinished tus uploads gather; the janitor removes them there too. No storage key begins with a dot. */
function incomingFolder({ DATA_DIR }: Config): string {
  return join(DATA_DIR, 'uploads', '.incoming');
}

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
  const incoming = await IncomingFiles.open(incomingFolder(config), ground.storage);
  const api = await startApi(config.HOST, config.API_PORT, (port) => ({
    redis: stores.redis,
    jobs,
    announcements,
    changes,
    keys: stores.keys,
    webhookSecrets: stores.webhookSecrets,
    storage: ground.storage,
    incoming,
    outbound: ground.outbound,
    signer: new UrlSigner(secrets.urlSigning, publicUrlOf(config, port)),
    logger,
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

/** @param apiPort port of the API where it is known; its events go there */
export async function runGateway(ground: Ground, apiPort?: number): Promise<RunningGateway> {
  const { config, secrets } = ground;
  return startGateway({
    host: config.HOST,
    port: config.GATEWAY_PORT,
    publicUrl: config.GATEWAY_PUBLIC_URL,
    brands: config.GATEWAY_BRANDS,
    apiKey: config.GATEWAY_API_KEY ?? secrets.gatewayApiKey,
    keyPepper: secrets.keyPepper,
    encryptionKey: secrets.encryption,
    redisUrl: ground.redisUrl,
    storage: ground.storage,
    outbound: ground.outbound,
    tools: await ground.tools(),
    workspacesDir: join(config.DATA_DIR, 'workspaces'),
    mediaTtlSeconds: config.MEDIA_TTL_SECONDS,
    webhookSchedule: config.WEBHOOK_SCHEDULE_SECONDS,
    trustProxy: config.TRUST_PROXY,
    events: {
      url: config.GATEWAY_EVENTS_URL ?? `${publicUrlOf(config, apiPort)}/hooks/gateway`,
      secret: secrets.gatewayEventsSecret,
    },
    logger: ground.logger,
  });
}

/** @param ports those of the API and the gateway where they are known */
export async function runWorker(
  ground: Ground,
  stores: Stores,
  ports: { readonly api?: number; readonly gateway?: number } = {},
): Promise<WorkerProcess> {
  const { config, logger, secrets } = ground;
  const tools = await ground.tools();
  const redis = connectRedis({ url: ground.redisUrl, role: 'worker', logger });
  const workspaces = await Workspaces.open(join(config.DATA_DIR, 'workspaces'));
  const worker = await startWorker({
    services: {
      outbound: ground.outbound,
      storage: ground.storage,
      tools,
      logger,
      limits: {
        maxInputBytes: config.MAX_INPUT_BYTES,
        maxAudioSeconds: config.MAX_AUDIO_SECONDS,
        outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
      },
    },
    redis,
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
    concurrency: config.WORKER_CONCURRENCY,
    lockSeconds: config.JOB_LOCK_SECONDS,
    jobTtlSeconds: config.JOB_TTL_SECONDS,
    workspaces,
  });
  const janitor = new Janitor({
    redis: stores.redis,
    outputTtlSeconds: config.OUTPUT_TTL_SECONDS,
    jobTtlSeconds: config.JOB_TTL_SECONDS,
    removeObject: (key) => ground.storage.remove(key),
    async removeUpload(file) {
      await rm(join(incomingFolder(config), file), { force: true });
      await ground.storage.remove(uploadStorageKey(file));
    },
    logger,
  });
  janitor.start(SWEEP_EVERY_MS);
  return {
    async close(graceMs) {
      await janitor.close();
      await worker.close(graceMs);
      await workspaces.close();
      await closeRedis(redis);
    },
  };
}
