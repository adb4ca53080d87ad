/** `serve`, `api`, `worker`, `gateway`: start, report addresses, and stop in the right order. */

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from 'soundpost-base/launcher';
import { scopes } from 'soundpost-contract/api-keys';
import { createAuditLog, type Logger } from 'soundpost-kit/observe/logger';
import { type Part, parts } from 'soundpost-kit/observe/metrics/table';
import { closeRedis, type Redis } from 'soundpost-kit/redis/connection';
import { checkRedis } from 'soundpost-kit/redis/fitness';
import { withDeadline } from 'soundpost-kit/storage/deadline';
import { findStarter } from 'soundpost-media/starter';
import type * as Api from '../api/start.ts';
import type * as Gateway from '../gateway/start.ts';
import { checkBullmq } from '../jobs/bullmq-internals.ts';
import { claimedId } from '../jobs/tenants/api-keys.ts';
import { type Config, loadConfig, searchPath } from '../process/config.ts';
import { Marks } from '../process/marks.ts';
import {
  checkStorage,
  observed,
  openFoundation,
  openRedis,
  openStores,
  type Resources,
  type Stores,
  withSecrets,
} from '../process/resources.ts';
import { configuredTools, describeTools, ownTools } from '../process/tools.ts';
import type * as Worker from '../worker/start.ts';
import { loopProbe } from './loop-watchdog.ts';

/** Phases of stopping; `traffic` takes in work and stops first, all of it in parallel. */
type Phase = 'traffic' | 'gateway' | 'resources';
type OnStop = (phase: Phase, stop: () => Promise<void>) => void;

interface ServeChoices {
  /** Take Redis and the results as they are, though their marks do not match. Default: ADOPT. */
  readonly adopt?: boolean;
}

/** Each process loads only the code that it runs: all three take 40 MiB. */
const startApi: typeof Api.startApi = async (...options) =>
  (await import('../api/start.ts')).startApi(...options);
const runGateway: typeof Gateway.runGateway = async (...options) =>
  (await import('../gateway/start.ts')).runGateway(...options);
const startWorker: typeof Worker.startWorker = async (...options) =>
  (await import('../worker/start.ts')).startWorker(...options);

/** Everything on one machine: API, gateway, worker and, without REDIS_URL, a Redis. */
export async function serve(say: (line: string) => void, choices: ServeChoices = {}): Promise<void> {
  await untilStopped(parts, choices, async (config, resources, stores, onStop) => {
    const newKey = await firstKey(config, resources, stores);
    const { sandbox } = await resources.tools();
    const api = await startApi(resources, stores, sandbox?.level);
    onStop('traffic', () => api.close(graceMs(config)));
    const gateway = await runGateway(resources, api.port);
    // The worker's last voice messages still use it.
    onStop('gateway', () => gateway.close());
    const worker = await startWorker(resources, stores, { api: api.port, gateway: gateway.port });
    onStop('traffic', () => worker.close(graceMs(config)));
    const inboxLink = await gateway.inboxLink();
    const ffmpeg = describeTools(await configuredTools(config));
    const lines = welcome({ apiPort: api.port, gatewayUrl: gateway.publicUrl, inboxLink, ffmpeg, newKey });
    for (const line of lines) say(line);
  });
}

export async function serveApi(say: (line: string) => void, choices: ServeChoices = {}): Promise<void> {
  await untilStopped(['api'], choices, async (config, resources, stores, onStop) => {
    await bootstrapKey(config, resources, stores);
    const api = await startApi(resources, stores);
    onStop('traffic', () => api.close(graceMs(config)));
    say(`API      http://127.0.0.1:${api.port}`);
  });
}

export async function serveGateway(say: (line: string) => void): Promise<void> {
  await untilStopped(['gateway'], {}, async (_config, resources, _stores, onStop) => {
    const gateway = await runGateway(resources);
    onStop('gateway', () => gateway.close());
    say(`Gateway  ${gateway.publicUrl}`);
  });
}

export async function serveWorker(say: (line: string) => void, choices: ServeChoices = {}): Promise<void> {
  await untilStopped(['worker'], choices, async (config, resources, stores, onStop) => {
    const worker = await startWorker(resources, stores);
    onStop('traffic', () => worker.close(graceMs(config)));
    const { sandbox } = await resources.tools();
    const { startHealthServer } = await import('../worker/health.ts');
    const health = await startHealthServer(
      config.HOST,
      config.WORKER_PORT,
      { redis: stores.redis, probes: resources.probes, sandbox: sandbox?.level ?? 'none' },
      observed('worker', resources),
    );
    onStop('resources', () => health.close());
    say(`Worker   running; health at http://127.0.0.1:${health.port}/health/ready`);
  });
}

/** For a Redis that is just starting or failing over; later, the supervisor restarts us. */
const REDIS_PATIENCE_MS = 15_000;

/**
 * Runs until SIGTERM or SIGINT, or until a failure that only a restart fixes, then stops
 * everything. A second signal ends the process at once. Rejects on a failure, also of the start.
 */
async function untilStopped(
  of: readonly Part[],
  choices: ServeChoices,
  start: (config: Config, resources: Resources, stores: Stores, onStop: OnStop) => Promise<void>,
): Promise<void> {
  const stopRequested = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
  const config = loadConfig();
  const foundation = await openFoundation(config, of);
  const { logger, probes } = foundation;
  const redis = openRedis(foundation);
  foundation.metrics.registry.watchProcess();
  const stops: Record<Phase, (() => Promise<void>)[]> = {
    traffic: [],
    gateway: [],
    resources: [() => closeRedis(redis)],
  };
  if (config.WATCHDOG_SECONDS > 0) {
    const starter = findStarter(searchPath, (await ownTools()).folder);
    probes.add('loop', loopProbe(config.WATCHDOG_SECONDS * 1000, starter, logger));
    void probes.ask('loop');
  }
  const breaks: Promise<string>[] = [once(probes, 'broken').then(([why]) => why)];
  if (foundation.embeddedRedis !== undefined) breaks.push(foundation.embeddedRedis.died);
  try {
    checkBullmq();
    await checkRedis({
      redis,
      waitReplicas: config.REDIS_WAIT_REPLICAS,
      patienceMs: REDIS_PATIENCE_MS,
      logger,
    });
    await checkStorage(foundation);
    const marks = of.some((part) => part !== 'gateway') ? marksOf(foundation, redis, choices) : undefined;
    // Before anything is written to a Redis that may be the wrong one.
    await marks?.demand();
    const resources = await withSecrets(foundation, redis);
    if (marks !== undefined) {
      breaks.push((await marks.start()).refused);
      stops.gateway.push(() => marks.close());
    }
    const stores = openStores(resources, redis);
    stops.resources.push(async () => stores.close());
    await probes.ask('clock');
    void probes.ask('link');
    void probes.ask('redis');
    await start(config, resources, stores, (phase, stop) => stops[phase].push(stop));
    const broken = await Promise.race([stopRequested, ...breaks]);
    if (broken !== undefined) {
      throw new Error(broken);
    }
    logger.info('stopping');
  } finally {
    endInAnyCase(config, logger);
    for (const phase of ['traffic', 'gateway', 'resources'] as const) {
      await Promise.all(stops[phase].map((stop) => stop()));
    }
    await foundation.close();
    await probes.close('loop');
  }
}

function marksOf(
  foundation: Awaited<ReturnType<typeof openFoundation>>,
  redis: Redis,
  { adopt }: ServeChoices,
): Marks {
  const { config, storage, storageWatch, place, probes, logger } = foundation;
  return new Marks({
    redis,
    probes,
    storage: withDeadline(storage, config.STORAGE_DEADLINE_SECONDS * 1000, storageWatch),
    place,
    adopt: adopt ?? config.ADOPT === '1',
    logger,
  });
}

/** Beyond SHUTDOWN_SECONDS, for aborts to take effect and connections to close. */
const CLOSE_MARGIN_MS = 20_000;

/** A hanging Redis, or anything else that does not close, must not keep the process alive. */
function endInAnyCase(config: Config, logger: Logger): void {
  setTimeout(() => {
    logger.error('shutdown timed out; running jobs move to another worker');
    process.exit(1);
  }, graceMs(config) + CLOSE_MARGIN_MS).unref();
}

function graceMs(config: Config): number {
  return config.SHUTDOWN_SECONDS * 1000;
}

async function bootstrapKey(
  { BOOTSTRAP_API_KEY }: Config,
  { logger }: Resources,
  { keys }: Stores,
): Promise<void> {
  const created = BOOTSTRAP_API_KEY === undefined ? undefined : await keys.bootstrap(BOOTSTRAP_API_KEY);
  if (created !== undefined) {
    createAuditLog(logger)({ event: 'key created', key: created });
  }
}

/** The operator's key, or one created at the very first start, returned to be shown once. */
async function firstKey(config: Config, resources: Resources, stores: Stores): Promise<string | undefined> {
  await bootstrapKey(config, resources, stores);
  if ((await stores.keys.list()).length > 0) {
    return undefined;
  }
  const key = await stores.keys.create({ name: 'first', scopes, instances: ['*'] });
  createAuditLog(resources.logger)({ event: 'key created', key: claimedId(key) });
  return key;
}

// What `serve` prints when ready: addresses, and a shell line that makes an MP3 of a video.

interface Serving {
  readonly apiPort: number;
  readonly gatewayUrl: string;
  /** Opens the inbox once. */
  readonly inboxLink: string;
  /** Which one is used. */
  readonly ffmpeg: string;
  /** The key of the very first start; not shown again. */
  readonly newKey: string | undefined;
}

/** A few seconds of speech, in a checkout and the npm package but not in the image. */
const SAMPLE = fileURLToPath(new URL('../../examples/sample.mp4', import.meta.url));
/** How to call this command line, in the package or in a checkout. */
const SELF = extname(import.meta.filename) === '.js' ? 'npx soundpost' : 'script/soundpost';

function welcome({ apiPort, gatewayUrl, inboxLink, ffmpeg, newKey }: Serving): string[] {
  const api = `http://127.0.0.1:${apiPort}`;
  const sample = existsSync(SAMPLE) ? SAMPLE : undefined;
  const what = sample === undefined ? 'video.mp4 in the current folder' : 'a sample';
  return [
    `Console  ${api}/`,
    `API      ${api}`,
    `Docs     ${api}/docs`,
    `Gateway  ${gatewayUrl}`,
    `Inbox    ${inboxLink} (one use, within 10 minutes)`,
    newKey === undefined
      ? `API key  was shown on the first start; create another with ${SELF} keys create --name mine`
      : `API key  ${newKey} (shown only once)`,
    `ffmpeg   ${ffmpeg}`,
    '',
    newKey === undefined
      ? `To extract an MP3 from ${what}, set SOUNDPOST_API_KEY in another terminal and paste:`
      : `To extract an MP3 from ${what}, paste this in another terminal:`,
    firstExtraction(api, newKey ?? '$SOUNDPOST_API_KEY', sample),
  ];
}

/** A POSIX shell line that submits the video, follows the job and downloads the result. */
function firstExtraction(api: string, key: string, sample: string | undefined): string {
  const header = '-H "X-API-Key: $KEY"';
  const request = `'request={"output":{"format":"mp3"}}'`;
  const jobId = `sed -n 's/.*"jobId":"\\([^"]*\\)".*/\\1/p'`;
  const output = sample === undefined ? 'video.mp3' : 'sample.mp3';
  return [
    `KEY=${key}`,
    `ANSWER=$(curl -sS --retry 5 ${api}/v1/extract ${header} -F ${shellWord(`file=@${sample ?? 'video.mp4'}`)} -F ${request})`,
    // Printed so that errors are visible.
    `printf '%s\\n' "$ANSWER"`,
    `JOB=$(printf %s "$ANSWER" | ${jobId})`,
    // Server-Sent Events, which end with the job.
    `curl -sSN ${api}/v1/jobs/\${JOB:?was not made}/events ${header}`,
    `curl -sSf -o ${output} ${api}/v1/download/$JOB ${header} && ls -l ${output}`,
  ].join('; ');
}
