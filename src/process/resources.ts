/** What every process needs, made from the configuration. */
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { dieWithParent } from 'soundpost-base/launcher';
import type { Around } from 'soundpost-kit/http/watched';
import { createLogger, type Logger } from 'soundpost-kit/observe/logger';
import type { Observer } from 'soundpost-kit/observe/metrics/observer';
import { Metrics } from 'soundpost-kit/observe/metrics/scrape';
import { measured, namesLoopback } from 'soundpost-kit/observe/metrics/server';
import type { Part } from 'soundpost-kit/observe/metrics/table';
import { Probes } from 'soundpost-kit/observe/probes';
import type { openTracing } from 'soundpost-kit/observe/tracing/open-telemetry';
import { noTracing, type Tracing } from 'soundpost-kit/observe/tracing/tracing';
import { clockProbe } from 'soundpost-kit/redis/clock';
import {
  connectRedis,
  linkProbe,
  pingRedis,
  type Redis,
  type RedisAddress,
  redisProbe,
} from 'soundpost-kit/redis/connection';
import { startEmbeddedRedis } from 'soundpost-kit/redis/embedded';
import { DiskSpace } from 'soundpost-kit/storage/disk-space';
import { type Storage, StorageUnavailable } from 'soundpost-kit/storage/storage';
import { StorageWatch } from 'soundpost-kit/storage/storage-watch';
import { Workspaces } from 'soundpost-kit/storage/workspaces';
import type { MediaTools } from 'soundpost-media/run';
import { endStrayTools } from 'soundpost-media/stray-tools';
import type { Outbound } from 'soundpost-outbound/outbound';
import { ApiKeys } from '../jobs/tenants/api-keys.ts';
import { Sessions } from '../jobs/tenants/sessions.ts';
import { WebhookSecrets } from '../jobs/tenants/webhook-secrets.ts';
import { openStorage, readRedisAddress } from './backing-services.ts';
import { type Config, ConfigurationError, searchPath, version } from './config.ts';
import { agreedRootSecret, deriveSecrets } from './secrets.ts';
import { confinedTools, guardedOutbound } from './tools.ts';

type OpenTracing = ReturnType<typeof openTracing>;

/** Everything that does not need Redis. */
interface Foundation
  extends Pick<
    Awaited<ReturnType<typeof openStorage>>,
    'sweep' | 'incoming' | 'downloadAddress' | 'inventory' | 'place'
  > {
  readonly config: Config;
  readonly logger: Logger;
  readonly redisAddress: RedisAddress;
  readonly embeddedRedis: Awaited<ReturnType<typeof startEmbeddedRedis>> | undefined;
  readonly storage: Storage;
  readonly probes: Probes;
  /** First checked by `checkStorage`. */
  readonly storageWatch: StorageWatch;
  readonly disk: Disk;
  readonly outbound: Outbound;
  readonly metrics: Metrics;
  readonly traces: Traces;
  /** ffmpeg and its sandbox, located at the first call: not every process runs ffmpeg. */
  tools(): Promise<MediaTools>;
  /** Opened at the first call: not every process has temporary files. */
  workspaces(): Promise<Workspaces>;
  close(): Promise<void>;
}

export interface Resources extends Foundation {
  readonly secrets: ReturnType<typeof deriveSecrets>;
}

/** @param of the parts that this process runs; empty for a process that is none of them */
export async function openFoundation(config: Config, of: readonly Part[]): Promise<Foundation> {
  const traces = await openTraces(config, of);
  const logger = createLogger(config.LOG_LEVEL, undefined, traces.idsForLog);
  traces.reportTo?.(logger);
  if (config.OUTBOUND_ALLOW !== '') {
    logger.info(
      { allow: config.OUTBOUND_ALLOW },
      'these addresses may be reached although they are not public',
    );
  }
  const redisAddress = await readRedisAddress(config);
  const metrics = new Metrics(of, version);
  const { storage, close: closeStorage, ...ofStorage } = await openStorage(config);
  const probes = new Probes(logger);
  metrics.read({ probes: () => probes.figures() });
  const storageWatch = new StorageWatch({
    storage,
    deadlineMs: config.STORAGE_DEADLINE_SECONDS * 1000,
    probes,
  });
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
  let workspaces: Promise<Workspaces> | undefined;
  return {
    config,
    logger,
    redisAddress: { ...redisAddress, url: redisAddress.url ?? embeddedRedis?.url ?? '' },
    embeddedRedis,
    storage,
    probes,
    storageWatch,
    ...ofStorage,
    disk,
    outbound,
    metrics,
    traces,
    tools() {
      tools ??= confinedTools(config, logger).then((found) => ({
        ...found,
        startsApart: true,
        watch: toolWatch(metrics.observer, traces.tracing),
      }));
      return tools;
    },
    workspaces() {
      workspaces ??= Workspaces.open(workspacesFolder(config), endStrayTools);
      return workspaces;
    },
    async close() {
      await workspaces?.then(
        (opened) => opened.close(),
        () => undefined,
      );
      await outbound.close();
      await probes.close('storage');
      closeStorage();
      await embeddedRedis?.close();
      await traces.close?.();
    },
  };
}

/**
 * Checks the storage for the first time. An unreachable storage is no error yet.
 * @throws ConfigurationError if it rejects us: wrong keys, bucket or region, or a wrong clock
 */
export async function checkStorage({ storageWatch }: Pick<Foundation, 'storageWatch'>): Promise<void> {
  if (await storageWatch.look()) return;
  const { failure } = storageWatch;
  if (failure instanceof StorageUnavailable && ['EACCES', 'ENOENT', 'EIO'].includes(failure.code)) {
    throw new ConfigurationError(failure.message);
  }
}

/** The connection for requests. */
export function openRedis({ redisAddress, logger }: Foundation): Redis {
  return connectRedis({ ...redisAddress, role: 'request', logger });
}

/** @throws ConfigurationError if the root secret is lost or does not match the data in Redis */
export async function withSecrets(foundation: Foundation, redis: Redis): Promise<Resources> {
  const { config, logger } = foundation;
  return { ...foundation, secrets: deriveSecrets(await agreedRootSecret(config, redis, logger)) };
}

/** Everything opened on that connection. */
export interface Stores {
  readonly redis: Redis;
  readonly keys: ApiKeys;
  readonly sessions: Sessions;
  readonly webhookSecrets: WebhookSecrets;
  /** Leaves the connection open. */
  close(): void;
}

export function openStores({ secrets, metrics, probes }: Resources, redis: Redis): Stores {
  // First checked once Redis has proved fit.
  probes.add('clock', clockProbe(redis));
  probes.add('link', linkProbe(redis));
  probes.add('redis', redisProbe(redis));
  metrics.read({ redis: () => pingRedis(redis).then(() => true) });
  return {
    redis,
    keys: new ApiKeys(redis, secrets.keyPepper),
    sessions: new Sessions(redis, secrets.keyPepper),
    webhookSecrets: new WebhookSecrets(redis, secrets.encryption),
    close() {
      void probes.close('clock', 'link', 'redis');
    },
  };
}

interface Disk {
  /** Where jobs work. */
  readonly workspaces: DiskSpace;
  /** Results and uploads: the workspaces' volume or one of their own. A bucket is never full. */
  readonly files: DiskSpace;
}

/** The volumes that the service writes to. */
async function openDisk(config: Config): Promise<Disk> {
  const { DATA_DIR, DISK_RESERVE_BYTES, STORAGE_URL } = config;
  await mkdir(workspacesFolder(config), { recursive: true, mode: 0o700 });
  const [ofFiles, ofWorkspaces] = await Promise.all([stat(DATA_DIR), stat(workspacesFolder(config))]);
  if (STORAGE_URL !== undefined) {
    const workspaces = new DiskSpace(workspacesFolder(config), DISK_RESERVE_BYTES);
    return { workspaces, files: new DiskSpace(DATA_DIR, 0) };
  }
  const files = new DiskSpace(DATA_DIR, DISK_RESERVE_BYTES);
  const isOne = ofFiles.dev === ofWorkspaces.dev;
  return { files, workspaces: isOne ? files : new DiskSpace(workspacesFolder(config), DISK_RESERVE_BYTES) };
}

/** Without a collector there are only spans. */
type Traces = Pick<OpenTracing, 'tracing'> & Partial<OpenTracing>;

/**
 * Without a collector nothing of OpenTelemetry's SDK is loaded (prom-client loads some of its API).
 * @param of the parts that this process runs: its name in the traces
 */
async function openTraces(config: Config, of: readonly Part[]): Promise<Traces> {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined || of.length === 0) {
    return { tracing: noTracing };
  }
  const { openTracing } = await import('soundpost-kit/observe/tracing/open-telemetry');
  return openTracing({
    endpoint,
    headers: config.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    sampler: { name: config.OTEL_TRACES_SAMPLER, ratio: config.OTEL_TRACES_SAMPLER_ARG },
    serviceName: of.length === 1 ? `soundpost-${of[0]}` : 'soundpost',
    version,
  });
}

/** Reports each ffmpeg run to the metrics and to the job's trace. */
export function toolWatch({ toolStarted }: Observer, tracing: Tracing): NonNullable<MediaTools['watch']> {
  return (tool) => {
    const count = toolStarted(tool);
    const end = tracing.begin(tool, {});
    return (ending) => {
      count(ending);
      end({ 'soundpost.tool.ending': ending });
    };
  };
}

/** Wraps an HTTP server to measure and trace its requests. */
export function observed(server: Part, { config, metrics, traces }: Resources): Around {
  const measure = { metrics, server, token: config.METRICS_TOKEN, isPublished: isPublished(config) };
  return (handler) => {
    const spans = traces.around?.(handler);
    const figures = measured(spans?.handle ?? handler, measure);
    return {
      handle: figures.handle,
      ended(...request) {
        figures.ended(...request);
        spans?.ended(...request);
      },
    };
  };
}

function isPublished({ PUBLIC_URL, GATEWAY_PUBLIC_URL }: Config): boolean {
  return [PUBLIC_URL, GATEWAY_PUBLIC_URL].some(
    (url) => url !== undefined && !namesLoopback(new URL(url).host),
  );
}

/** The API's address in answers and webhooks. */
export function publicUrlOf({ PUBLIC_URL, API_PORT }: Config, port = API_PORT): string {
  return PUBLIC_URL ?? `http://127.0.0.1:${port}`;
}

/** Unfinished tus uploads; the janitor cleans up here too. No storage key begins with a dot. */
export function incomingFolder({ DATA_DIR }: Config): string {
  return join(DATA_DIR, 'uploads', '.incoming');
}

/** The only place for temporary files. */
function workspacesFolder({ DATA_DIR }: Config): string {
  return join(DATA_DIR, 'workspaces');
}
