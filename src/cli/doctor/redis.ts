/** Redis: the one of REDIS_URL, or the embedded one over DATA_DIR. */

import type { Redis } from 'soundpost-kit/redis/connection';
import { redisServerVersion } from 'soundpost-kit/redis/embedded';
import { OLDEST_REDIS, RedisUnfit } from 'soundpost-kit/redis/fitness';
import { ownKey } from 'soundpost-kit/redis/keys';
import type { parseRedisUrl } from 'soundpost-kit/redis/target';
import { type Finding, isOlder, messageOf, ok } from './check.ts';
import type { System } from './system.ts';

type RedisTarget = ReturnType<typeof parseRedisUrl>;

/** Everything that the service's user needs (docs/operations/redis.md "A dedicated user"). */
export const ACL_RULE =
  'resetchannels &{soundpost}:* ~{soundpost}* -@all +@read +@write +@pubsub +@transaction +@connection -@dangerous +eval +evalsha +time +wait +info +cluster|slots +cluster|info';

/** Without REDIS_URL: whether an embedded one can start. */
export async function checkRedisProgram(system: System): Promise<Finding[]> {
  const program = system.find('redis-server');
  const command = system.install('redis');
  const remedy = `install Redis ${OLDEST_REDIS} or newer, or set REDIS_URL to a running one`;
  if (program === undefined) {
    return [
      { verdict: 'fault', found: 'no REDIS_URL, and redis-server is not on the PATH', remedy, command },
    ];
  }
  const version = await redisServerVersion(program);
  if (isOlder(version, OLDEST_REDIS)) {
    const found = `${program} is Redis ${version}, which is too old: ${OLDEST_REDIS} or newer is needed`;
    return [{ verdict: 'fault', found, remedy, command }];
  }
  return [ok(`no REDIS_URL: \`serve\` starts ${program}, ${version}`)];
}

interface ServerToCheck {
  readonly redis: Redis;
  readonly target: RedisTarget;
  /** Whether Soundpost started it over DATA_DIR. */
  readonly isEmbedded: boolean;
  /** Checks it like a starting process: rejects with RedisUnfit, or resolves with warnings. */
  look(): Promise<readonly string[]>;
}

export async function checkRedisServer(server: ServerToCheck, system: System): Promise<Finding[]> {
  let warnings: readonly string[];
  try {
    warnings = await server.look();
  } catch (error) {
    const command = error instanceof RedisUnfit ? mending(error.reason, server, system) : undefined;
    return [{ verdict: 'fault', found: messageOf(error), remedy: remedyOf(error), command }];
  }
  const refused = await refusalOf(server.redis);
  if (refused !== undefined) {
    const found = `the user in REDIS_URL lacks a permission (${refused})`;
    const remedy = 'give it the rule in docs/operations/redis.md "A dedicated user"';
    return [{ verdict: 'fault', found, remedy, command: mending('permission', server, system) }];
  }
  const { version, name } = await versionOf(server.redis);
  const which = server.isEmbedded ? 'of the Soundpost that runs on DATA_DIR' : 'at REDIS_URL';
  return [
    ok(`${name} ${version} ${which} answers`),
    ...warnings.map((found): Finding => {
      const setting = found.includes('appendonly') ? 'CONFIG SET appendonly yes' : 'INFO replication';
      return { verdict: 'warning', found, command: onServer(server.target, setting) };
    }),
  ];
}

function remedyOf(error: unknown): string | undefined {
  return error instanceof RedisUnfit && error.reason === 'away'
    ? 'start it, or correct REDIS_URL; without REDIS_URL `serve` starts its own'
    : undefined;
}

function mending(
  reason: RedisUnfit['reason'],
  { target }: ServerToCheck,
  system: System,
): string | undefined {
  const isHere =
    target.kind === 'socket' ||
    (target.kind === 'single' && ['127.0.0.1', '::1', 'localhost'].includes(target.node.host));
  switch (reason) {
    case 'eviction':
      return onServer(target, 'CONFIG SET maxmemory-policy noeviction');
    case 'permission':
      return onServer(target, `ACL SETUSER ${loginOf(target) ?? 'default'} ${quotedRule()}`);
    case 'replica':
      return onServer(target, 'INFO replication');
    case 'version':
      return system.install('redis');
    case 'away':
      if (isHere && system.find('redis-server') === undefined) return system.install('redis');
      return (isHere ? system.startRedis() : undefined) ?? onServer(target, 'PING');
    default:
      return onServer(target, 'PING');
  }
}

/** The rule, quoted for a shell. */
function quotedRule(): string {
  return ACL_RULE.split(' ')
    .map((word) => (/^[\w@+-]+$/.test(word) ? word : `'${word}'`))
    .join(' ');
}

function loginOf(target: RedisTarget): string | undefined {
  return target.kind === 'socket' ? undefined : target.username;
}

/** For an administrator: redis-cli asks for the password, which is not shown. */
function onServer(target: RedisTarget, command: string): string {
  if (target.kind === 'socket') return `redis-cli -s ${target.path} ${command}`;
  const tls = target.tls ? ' --tls' : '';
  const login = target.password === undefined ? '' : ' --askpass';
  const place = (host: string, port: number): string => `redis-cli -h ${host} -p ${port}${tls}${login}`;
  switch (target.kind) {
    case 'single':
      return `${place(target.node.host, target.node.port)} ${command}`;
    case 'cluster':
      return `redis-cli${tls}${login} --cluster call ${target.nodes[0].host}:${target.nodes[0].port} ${command}`;
    case 'sentinel': {
      const [{ host, port } = { host: 'localhost', port: 26379 }] = target.sentinels;
      return command === 'PING'
        ? `redis-cli -h ${host} -p ${port}${tls} SENTINEL GET-MASTER-ADDR-BY-NAME ${target.master}`
        : `redis-cli -h <its master>${tls}${login} ${command}`;
    }
  }
}

/** On a busy machine a command may be late once. */
const TRIES = 3;

/** Redis' answer, or the last attempt's error. */
export async function patiently<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (tries === TRIES || /NOPERM/.test(messageOf(error))) throw error;
    }
  }
}

/** Tries every kind of command that the service uses, on an unused key; undefined if allowed. */
async function refusalOf(redis: Redis): Promise<string | undefined> {
  const key = ownKey('doctor');
  const probes = [
    () => redis.exists(key),
    () => redis.del(key),
    () => redis.eval("return redis.call('EXISTS', KEYS[1])", 1, key),
    () => redis.publish(key, ''),
    () => redis.time(),
  ];
  for (const probe of probes) {
    try {
      await patiently(probe);
    } catch (error) {
      if (/NOPERM/.test(messageOf(error))) return messageOf(error);
      throw error;
    }
  }
  return undefined;
}

async function versionOf(redis: Redis): Promise<{ name: string; version: string }> {
  const info = await patiently(() => redis.info('server'));
  const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
  return valkey === undefined
    ? { name: 'Redis', version: /^redis_version:(\S+)/m.exec(info)?.[1] ?? '' }
    : { name: 'Valkey', version: valkey };
}
