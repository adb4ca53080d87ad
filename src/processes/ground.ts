/** What every process stands on: the configuration turned into secrets, Redis, storage and the way outside. */
import { join } from 'node:path';
import { type Config, searchPath } from '../config.ts';
import { dieWithParent } from '../launcher.ts';
import { createLogger, type Logger } from '../logger.ts';
import type { MediaTools } from '../media/run.ts';
import { Metrics } from '../metrics/scrape.ts';
import type { Part } from '../metrics/table.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { ApiKeys } from '../queue/api-keys.ts';
import { type EmbeddedRedis, startEmbeddedRedis } from '../queue/embedded-redis.ts';
import { closeRedis, connectRedis, pingRedis, type Redis, type RedisAddress } from '../queue/redis.ts';
import { WebhookSecrets } from '../queue/webhook-secrets.ts';
import { type DerivedSecrets, deriveSecrets, machineSecretKey } from '../secrets.ts';
import type { Storage } from '../storage/storage.ts';
import { type Disk, openDisk } from './disk.ts';
import { version } from './manifest.ts';
import { readRedisAddress } from './redis-address.ts';
import { type OpenStorage, openStorage } from './storage.ts';
import { confinedTools, guardedOutbound } from './tools.ts';
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
  const traces = await openTraces(config, of, version);
  const logger = createLogger(config.LOG_LEVEL, undefined, traces.idsForLog);
  traces.reportTo?.(logger);
  const secrets = deriveSecrets(config.SECRET_KEY ?? (await machineSecretKey(config.DATA_DIR)));
  if (config.OUTBOUND_ALLOW !== '') {
    logger.info(
      { allow: config.OUTBOUND_ALLOW },
      'these addresses may be reached although they are not public',
    );
  }
  const redisAddress = await readRedisAddress(config);
  const metrics = new Metrics(of, version);
  const { storage, close: closeStorage, ...ofStorage } = await openStorage(config);
  const disk = await openDisk(config);
  const outbound = guardedOutbound(config, logger);
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
