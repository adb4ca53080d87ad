/** What every process stands on: the configuration turned into secrets, Redis, storage and the way outside. */
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { type Config, ConfigurationError, searchPath } from '../config.ts';
import { dieWithParent, findProgram } from '../launcher.ts';
import { createLogger, type Logger } from '../logger.ts';
import { detectSandbox } from '../media/detect-sandbox.ts';
import type { MediaTools } from '../media/run.ts';
import { Metrics } from '../metrics/scrape.ts';
import type { Part } from '../metrics/table.ts';
import { parseAllowRules } from '../outbound/allow-rules.ts';
import { createOutbound, type Outbound } from '../outbound/outbound.ts';
import { ApiKeys } from '../queue/api-keys.ts';
import { type EmbeddedRedis, startEmbeddedRedis } from '../queue/embedded-redis.ts';
import { closeRedis, connectRedis, pingRedis, type Redis, type RedisAddress } from '../queue/redis.ts';
import { WebhookSecrets } from '../queue/webhook-secrets.ts';
import { type DerivedSecrets, deriveSecrets, machineSecretKey } from '../secrets.ts';
import type { Storage } from '../storage/storage.ts';
import { type Disk, openDisk } from './disk.ts';
import { readRedisAddress } from './redis-address.ts';
import { type OpenStorage, openStorage } from './storage.ts';
import { openTraces, type Traces, toolWatch } from './traces.ts';

/** What every process needs: secrets, Redis, storage, the way outside. */
export interface Ground extends Pick<OpenStorage, 'sweep' | 'incoming' | 'downloadAddress'> {
  readonly config: Config;
  readonly logger: Logger;
  readonly secrets: DerivedSecrets;
  readonly redisAddress: RedisAddress;
  readonly embeddedRedis: EmbeddedRedis | undefined;
  readonly storage: Storage;
  readonly disk: Disk;
  readonly outbound: Outbound;
  readonly metrics: Metrics;
  readonly traces: Traces;
  /** ffmpeg, and the sandbox for it, which is looked for when this is called first: not every process runs ffmpeg. */
  tools(): Promise<MediaTools>;
  close(): Promise<void>;
}

/** @param of what the process is to be made of; none for one that does something else */
export async function openGround(config: Config, of: readonly Part[]): Promise<Ground> {
  const traces = await openTraces(config, of, manifest.version);
  const logger = createLogger(config.LOG_LEVEL, undefined, traces.idsForLog);
  traces.reportTo?.(logger);
  const secrets = deriveSecrets(config.SECRET_KEY ?? (await machineSecretKey(config.DATA_DIR)));
  const allow = parseAllowRules(config.OUTBOUND_ALLOW);
  if (config.OUTBOUND_ALLOW !== '') {
    logger.info(
      { allow: config.OUTBOUND_ALLOW },
      'these addresses may be reached although they are not public',
    );
  }
  const redisAddress = await readRedisAddress(config);
  const metrics = new Metrics(of, manifest.version);
  const { storage, close: closeStorage, ...ofStorage } = await openStorage(config);
  const disk = await openDisk(config);
  const patienceMs = config.SOURCE_PATIENCE_SECONDS * 1000;
  const outbound = createOutbound({
    allow,
    ports: config.OUTBOUND_PORTS,
    logger,
    userAgent: 'Soundpost',
    downloadLimits: {
      headersTimeoutMs: patienceMs,
      idleTimeoutMs: patienceMs,
      rateWindowMs: patienceMs,
      minBytesPerSecond: config.SOURCE_MIN_BYTES_PER_SECOND,
    },
  });
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
    redisAddress: { ...redisAddress, url: redisAddress.url ?? embeddedRedis?.url ?? '' },
    embeddedRedis,
    storage,
    ...ofStorage,
    disk,
    outbound,
    metrics,
    traces,
    tools() {
      tools ??= confinedTools(config, logger).then((found) => ({
        ...found,
        watch: toolWatch(metrics.observer, traces.tracing),
      }));
      return tools;
    },
    async close() {
      await outbound.close();
      closeStorage();
      await embeddedRedis?.close();
      await traces.close?.();
    },
  };
}

/** The first ffmpeg and ffprobe on the PATH; undefined where one of them is missing. */
export function findTools(): Omit<MediaTools, 'sandbox'> | undefined {
  const [ffmpegPath, ffprobePath] = [findProgram('ffmpeg', searchPath), findProgram('ffprobe', searchPath)];
  return ffmpegPath === undefined || ffprobePath === undefined
    ? undefined
    : { ffmpegPath, ffprobePath, launcher: dieWithParent('KILL', searchPath) };
}

async function confinedTools({ SANDBOX }: Config, logger: Logger): Promise<MediaTools> {
  const tools = findTools();
  if (tools === undefined) {
    throw new ConfigurationError(
      'ffmpeg and ffprobe are not on the PATH: install ffmpeg (apt-get install ffmpeg); `soundpost doctor` checks the rest',
    );
  }
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

export function openStores({ redisAddress, logger, secrets, metrics }: Ground): Stores {
  const redis = connectRedis({ ...redisAddress, role: 'request', logger });
  metrics.read({ redis: () => pingRedis(redis).then(() => true) });
  return {
    redis,
    keys: new ApiKeys(redis, secrets.keyPepper),
    webhookSecrets: new WebhookSecrets(redis, secrets.encryption),
    close: () => closeRedis(redis),
  };
}
