/** `doctor`: whether Soundpost can run on this machine. Changes nothing, starts no server. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dieWithParent, findProgram } from 'soundpost-base/launcher';
import { createLogger } from 'soundpost-kit/observe/logger';
import {
  closeRedis,
  connectRedis,
  pingRedis,
  type Redis,
  type RedisAddress,
} from 'soundpost-kit/redis/connection';
import { hasEmbeddedData, runningEmbeddedRedis, startEmbeddedRedis } from 'soundpost-kit/redis/embedded';
import { checkRedis } from 'soundpost-kit/redis/fitness';
import { parseRedisUrl } from 'soundpost-kit/redis/target';
import { parseAllowRules } from 'soundpost-outbound/allow-rules';
import { openStorage, readRedisAddress } from '../process/backing-services.ts';
import { type Config, configuredCount, readConfig, searchPath } from '../process/config.ts';
import { lookAtRootSecret, secretKeyPath } from '../process/secrets.ts';
import { type ConfiguredTools, configuredTools } from '../process/tools.ts';
import {
  asJson,
  asText,
  type Check,
  type Finding,
  messageOf,
  ok,
  runChecks,
  worstOf,
} from './doctor/check.ts';
import { checkClock } from './doctor/clock.ts';
import { checkDisk } from './doctor/disk.ts';
import { checkBucket, checkGateway, checkTranscriber } from './doctor/elsewhere.ts';
import { checkFfmpeg, checkSandbox } from './doctor/media.ts';
import { checkPorts } from './doctor/ports.ts';
import { checkRedisProgram, checkRedisServer, patiently } from './doctor/redis.ts';
import { checkResults } from './doctor/results.ts';
import { System } from './doctor/system.ts';
import type { Streams } from './streams.ts';

type ConfigFault = ReturnType<typeof readConfig>['faults'][number];

/** A check that takes longer hangs. Checks with limits of their own stay below it. */
const LIMIT_MS = 60_000;
/** For several attempts: one may be late on a busy machine. */
const REDIS_PATIENCE_MS = 10_000;

interface DoctorChoices {
  readonly json?: boolean;
}

/** @returns the exit code: 0 without faults, else 1 */
export async function doctor(
  { json = false }: DoctorChoices,
  say: (line: string) => void,
  { stdout }: Streams,
): Promise<0 | 1> {
  const { config, faults } = readConfig();
  const system = new System({
    find: (name) => findProgram(name, searchPath),
    userId: process.getuid?.(),
    // sd_booted(3)
    hasSystemd: existsSync('/run/systemd/system'),
  });
  const { address, isEmbedded, damage, close } = await redisOf(config, faults);
  const redis =
    address === undefined
      ? undefined
      : connectRedis({ ...address, role: 'request', logger: createLogger('silent') });
  try {
    const rows = await runChecks(
      [
        ...ofMachine(config, await configuredTools(config), system),
        ...ofRedis({ config, system, redis, address, isEmbedded, damage }),
        ...ofOthers(config),
        { name: 'Configuration', run: async () => checkConfiguration(faults, configuredCount()) },
      ],
      LIMIT_MS,
    );
    say(json ? asJson(rows) : asText(rows, stdout.isTTY === true));
    return worstOf(rows) === 'fault' ? 1 : 0;
  } finally {
    if (redis !== undefined) await closeRedis(redis);
    await close?.();
  }
}

function ofMachine(config: Config, found: ConfiguredTools, system: System): Check[] {
  // bin/soundpost.js has already rejected what cannot run this.
  const runs = import.meta.url.endsWith('.ts') ? 'TypeScript directly' : 'compiled code';
  const kernel = (setting: string): Promise<string | undefined> =>
    readFile(`/proc/sys/${setting}`, 'utf8').then(
      (text) => text.trim(),
      () => undefined,
    );
  const ports = [
    { variable: 'API_PORT', port: config.API_PORT, isNeeded: true },
    { variable: 'GATEWAY_PORT', port: config.GATEWAY_PORT, isNeeded: true },
    { variable: 'WORKER_PORT', port: config.WORKER_PORT, isNeeded: false },
  ];
  const disk = {
    dataDir: config.DATA_DIR,
    reserveBytes: config.DISK_RESERVE_BYTES,
    holdsRedis: config.REDIS_URL === undefined,
  };
  return [
    { name: 'Node', run: async () => [ok(`${process.versions.node}, runs ${runs}`)] },
    { name: 'ffmpeg', run: () => checkFfmpeg(found, system) },
    { name: 'Sandbox', run: () => checkSandbox(found.tools, config.SANDBOX === 'required', kernel, system) },
    { name: 'Disk', run: () => checkDisk(disk, system) },
    { name: 'Ports', run: () => checkPorts(config.HOST, ports) },
  ];
}

interface FoundRedis {
  readonly address: RedisAddress | undefined;
  readonly isEmbedded: boolean;
  /** Why the embedded one does not start over its data. */
  readonly damage?: string;
  /** Ends the one that was started to look into its data. */
  readonly close?: () => Promise<void>;
}

/** Redis of REDIS_URL, or the embedded one, running or with data. Adds faults of the variables. */
async function redisOf(config: Config, faults: ConfigFault[]): Promise<FoundRedis> {
  try {
    parseAllowRules(config.OUTBOUND_ALLOW);
  } catch (error) {
    faults.push({ variable: 'OUTBOUND_ALLOW', rule: messageOf(error) });
  }
  try {
    const { url, tls } = await readRedisAddress(config);
    if (url !== undefined) return { address: { url, tls }, isEmbedded: false };
  } catch (error) {
    const [, variable = 'REDIS_URL', rule = ''] = /^(\w+):? (.*)$/s.exec(messageOf(error)) ?? [];
    faults.push({ variable, rule });
    return { address: undefined, isEmbedded: false };
  }
  return embeddedRedis(join(config.DATA_DIR, 'redis'));
}

async function embeddedRedis(folder: string): Promise<FoundRedis> {
  const running = await runningEmbeddedRedis(folder);
  if (running !== undefined) return { address: { url: running }, isEmbedded: true };
  const canStart = findProgram('redis-server', searchPath) !== undefined && (await hasEmbeddedData(folder));
  if (!canStart) return { address: undefined, isEmbedded: true };
  try {
    const { url, close } = await startEmbeddedRedis({ folder, launcher: dieWithParent('TERM', searchPath) });
    return { address: { url }, isEmbedded: true, close };
  } catch (error) {
    return { address: undefined, isEmbedded: true, damage: messageOf(error) };
  }
}

interface RedisToCheck extends FoundRedis {
  readonly config: Config;
  readonly system: System;
  readonly redis: Redis | undefined;
}

function ofRedis({ config, system, redis, address, isEmbedded, damage }: RedisToCheck): Check[] {
  const clock = { now: Date.now, steady: () => performance.now() };
  if (damage !== undefined) {
    const [command] = /redis-check-aof --fix [^;]+/.exec(damage) ?? [];
    return [{ name: 'Redis', run: async () => [{ verdict: 'fault', found: damage, command }] }];
  }
  if (redis === undefined || address === undefined) {
    return [
      ...(isEmbedded ? [{ name: 'Redis', run: () => checkRedisProgram(system) }] : []),
      { name: 'Clock', run: () => checkClock(clock, undefined, system) },
    ];
  }
  const look = async (): Promise<string[]> => {
    const warnings: string[] = [];
    const logger = createLogger('warn', {
      write: (line) => warnings.push((JSON.parse(line) as { msg: string }).msg),
    });
    const waitReplicas = config.REDIS_WAIT_REPLICAS;
    await checkRedis({ redis, waitReplicas, patienceMs: REDIS_PATIENCE_MS, logger });
    // It warned while waiting for an answer; only the outcome counts.
    return warnings.filter((warning) => !warning.endsWith('; waiting for it'));
  };
  const server = { redis, target: parseRedisUrl(address.url), isEmbedded, look };
  const time = async (): Promise<number> => {
    const [seconds, microseconds] = await patiently(() => redis.time());
    return Number(seconds) * 1000 + Number(microseconds) / 1000;
  };
  return [
    { name: 'Redis', run: () => checkRedisServer(server, system) },
    { name: 'Secret', run: () => checkSecret(config, redis, isEmbedded) },
    { name: 'Results', run: () => checkResults(config, redis) },
    { name: 'Clock', run: () => checkClock(clock, time, system) },
  ];
}

/** Silent if the configuration or Redis has a fault, which has its own row. */
async function checkSecret(config: Config, redis: Redis, isEmbedded: boolean): Promise<Finding[]> {
  if (!isEmbedded && (config.SECRET_KEY ?? config.SECRET_KEY_FILE) === undefined) return [];
  const hears = await patiently(() => pingRedis(redis)).then(
    () => true,
    () => false,
  );
  if (!hears) return [];
  const state = await patiently(() => lookAtRootSecret(config, redis));
  switch (state.kind) {
    case 'same':
      return [ok(`${state.origin} matches the data in Redis`)];
    case 'new':
      return [ok(`${state.origin} is set; Redis has no data yet`)];
    case 'none':
      return [ok(`the first start creates one in ${secretKeyPath(config)}`)];
    case 'refused':
      return [{ verdict: 'fault', found: state.problem, remedy: state.remedy }];
  }
}

function ofOthers(config: Config): Check[] {
  const { STORAGE_URL, S3_ENDPOINT, S3_REGION, GATEWAY_URL, GATEWAY_KIND } = config;
  const checks: Check[] = [];
  if (STORAGE_URL !== undefined) {
    const facts = { bucket: STORAGE_URL.bucket, endpoint: S3_ENDPOINT, region: S3_REGION };
    const ping = async (): Promise<void> => {
      const { storage, close } = await openStorage(config);
      await storage.ping().finally(close);
    };
    checks.push({ name: 'Storage', run: () => checkBucket(facts, ping) });
  }
  if (GATEWAY_URL !== undefined) {
    checks.push({ name: 'Gateway', run: () => checkGateway(GATEWAY_URL, GATEWAY_KIND === 'soundpost') });
  }
  const { TRANSCRIBER_URL, TRANSCRIBER_API_KEY } = config;
  if (TRANSCRIBER_URL !== undefined) {
    checks.push({ name: 'Transcriber', run: () => checkTranscriber(TRANSCRIBER_URL, TRANSCRIBER_API_KEY) });
  }
  return checks;
}

/** @param count how many variables are set */
function checkConfiguration(faults: readonly ConfigFault[], count: number): Finding[] {
  if (faults.length === 0) {
    return [ok(count === 0 ? 'nothing is set: the defaults apply' : `${count} variables are set and valid`)];
  }
  return faults.map(({ variable, rule }) => ({
    verdict: 'fault',
    found: `${variable}: ${rule}`,
    remedy: `see ${variable} in docs/reference/configuration.md`,
    command: mending(variable, rule),
  }));
}

/** The command that replaces a missing or short secret, or unsets another variable. */
function mending(variable: string, rule: string): string {
  const isSecret = /^(SECRET_KEY|GATEWAY_API_KEY|ADMIN_KEY|METRICS_TOKEN)$/.test(variable);
  if (isSecret) return `export ${variable}="$(openssl rand -hex 32)"`;
  const other = /must be set together with (\w+)/.exec(rule)?.[1];
  return `unset ${variable}${other === undefined ? '' : ` ${other}`}`;
}
