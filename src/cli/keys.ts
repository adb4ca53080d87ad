/** `keys`: manages API keys (decisions A6), with or without a running service. */
import { join } from 'node:path';
import { ordinaryScopes, Scope, scopes } from 'soundpost-contract/api-keys';
import { ServiceError } from 'soundpost-contract/errors';
import { type AuditLog, createAuditLog, type Logger } from 'soundpost-kit/observe/logger';
import { closeRedis, pingRedis, type Redis } from 'soundpost-kit/redis/connection';
import { runningEmbeddedRedis } from 'soundpost-kit/redis/embedded';
import { type ApiKeys, claimedId } from '../jobs/tenants/api-keys.ts';
import { type Config, loadConfig } from '../process/config.ts';
import { openFoundation, openRedis, openStores, withSecrets } from '../process/resources.ts';
import { acceptRootSecret } from '../process/secrets.ts';
import { UsageError } from './ending.ts';

interface KeyChoices {
  readonly name: string;
  /** Comma-separated; default: all but `admin`. */
  readonly scopes?: string;
  /** Comma-separated names of gateway instances, `*` for any; default: none. */
  readonly instances?: string;
  readonly json?: boolean;
}

/** @param hint gets a sentence about a key that cannot use its scopes */
export async function createKey(choices: KeyChoices, hint: (sentence: string) => void): Promise<string> {
  const parsed = Scope.array().safeParse(split(choices.scopes) ?? ordinaryScopes);
  if (!parsed.success) {
    throw new UsageError(`--scopes: each must be one of ${scopes.join(', ')}`);
  }
  const wanted = { name: choices.name, scopes: parsed.data, instances: split(choices.instances) ?? [] };
  const key = await withKeys(async ({ keys, audit }) => {
    const made = await keys.create(wanted);
    audit({ event: 'key created', key: claimedId(made) });
    return made;
  });
  if (wanted.scopes.includes('voice') && wanted.instances.length === 0) {
    hint('this key can send voice messages, but from no instance: name instances with --instances, or use *');
  }
  return choices.json ? JSON.stringify({ id: claimedId(key), key, ...wanted }) : key;
}

export async function listKeys(asJson: boolean): Promise<string> {
  const keys = await withKeys(({ keys: store }) => store.list());
  if (asJson) {
    return JSON.stringify(keys);
  }
  return keys
    .map(({ id, name, revoked, pausedAtMs, isUnreadable, scopes: may }) => {
      if (isUnreadable)
        return `${id}  unreadable  its record cannot be read; remove it with "keys revoke ${id}"`;
      const state = revoked ? 'revoked' : pausedAtMs === undefined ? may.join(',') : 'paused';
      return `${id}  ${state}  ${name}`;
    })
    .join('\n');
}

export async function revokeKey(id: string): Promise<string> {
  await change(id, 'key revoked', ({ keys }) => keys.revoke(id));
  return `revoked ${id}`;
}

/** Its jobs wait, and it submits none. Running jobs continue, unless `stop` ends them. */
export async function pauseKey(id: string, stop = false): Promise<string> {
  let ended = 0;
  await change(id, stop ? 'key stopped' : 'key paused', async (stores) => {
    const known = await stores.keys.pause(id);
    // After the pause, so that none starts in between.
    if (known && stop) ended = await cancelRunning(stores, id);
    return known;
  });
  const until = `resume it with "keys resume ${id}"`;
  const jobs = ended === 1 ? '1 running job' : `${ended} running jobs`;
  return stop ? `paused ${id} and cancelled ${jobs}; ${until}` : `paused ${id}; ${until}`;
}

export async function resumeKey(id: string): Promise<string> {
  await change(id, 'key resumed', ({ keys }) => keys.resume(id));
  return `resumed ${id}; its jobs start within 10 seconds`;
}

async function cancelRunning({ redis, config, logger }: KeyStores, tenant: string): Promise<number> {
  const { JobQueue } = await import('../jobs/job-queue.ts');
  const jobs = new JobQueue({
    redis,
    limits: {
      submitPerMinute: config.RATE_SUBMIT_PER_MINUTE,
      unfinishedPerTenant: config.UNFINISHED_PER_KEY,
      queueLimit: config.QUEUE_LIMIT,
    },
    holdUpload: async () => true,
    recordSeconds: config.JOB_TTL_SECONDS,
    logger,
  });
  try {
    return await jobs.cancelRunning(tenant);
  } finally {
    await jobs.close();
  }
}

/** @throws UsageError if `work` finds no such key */
async function change(
  id: string,
  event: Parameters<AuditLog>[0]['event'],
  work: (stores: KeyStores) => Promise<boolean>,
): Promise<void> {
  const known = await withKeys(async (stores) => {
    const changed = await work(stores);
    if (changed) stores.audit({ event, key: id });
    return changed;
  });
  if (!known) throw new UsageError(`no such key: ${id}; see "keys list"`);
}

export async function rotateKey(id: string): Promise<string> {
  const key = await withKeys(async ({ keys, audit }) => {
    const made = await keys.rotate(id).catch((error: unknown) => {
      throw error instanceof ServiceError ? new UsageError(error.message) : error;
    });
    if (made !== undefined) {
      audit({ event: 'key rotated', key: id });
    }
    return made;
  });
  if (key === undefined) {
    throw new UsageError(`no such key: ${id}; see "keys list"`);
  }
  return key;
}

interface KeyStores {
  readonly keys: ApiKeys;
  readonly redis: Redis;
  readonly config: Config;
  readonly logger: Logger;
  readonly audit: AuditLog;
}

/** `accept-secret`: makes this environment's secret the valid one, whatever Redis holds. */
export async function acceptSecret(): Promise<string> {
  const { before, now } = await withRedis(({ config, logger }, redis) =>
    acceptRootSecret(config, redis, logger),
  );
  if (before === now) return `nothing to do: Redis already has this SECRET_KEY (fingerprint ${now})`;
  const instead = before === undefined ? '' : ` instead of ${before}`;
  return `Redis now accepts the SECRET_KEY with fingerprint ${now}${instead}; run "keys rotate <id>" for each key in "keys list": it gets a new secret and keeps its jobs`;
}

async function withKeys<Result>(work: (stores: KeyStores) => Promise<Result>): Promise<Result> {
  return withRedis(async (foundation, redis) => {
    const stores = openStores(await withSecrets(foundation, redis), redis);
    const { config, logger } = foundation;
    const audit = process.stderr.isTTY ? () => undefined : createAuditLog(logger);
    try {
      return await work({ ...stores, config, logger, audit });
    } finally {
      stores.close();
    }
  });
}

/** Uses the Redis of a service over the same DATA_DIR, or starts a temporary one. */
async function withRedis<Result>(
  work: (foundation: Awaited<ReturnType<typeof openFoundation>>, redis: Redis) => Promise<Result>,
): Promise<Result> {
  const asked = loadConfig();
  // On a terminal, logs would only clutter the answer.
  const isRead = process.stderr.isTTY;
  const config = isRead && asked.LOG_LEVEL === 'info' ? { ...asked, LOG_LEVEL: 'warn' as const } : asked;
  const running = config.REDIS_URL ?? (await runningEmbeddedRedis(join(config.DATA_DIR, 'redis')));
  const foundation = await openFoundation({ ...config, REDIS_URL: running }, []);
  const redis = openRedis(foundation);
  try {
    await untilHeard(redis);
    return await work(foundation, redis);
  } finally {
    await closeRedis(redis);
    await foundation.close();
  }
}

/** On a busy machine, such as while containers start, the first answer may be late. */
const TRIES = 10;

async function untilHeard(redis: Redis): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await pingRedis(redis);
    } catch (error) {
      const isLate = error instanceof Error && /timed? ?out/i.test(error.message);
      if (!isLate || tries === TRIES) throw error;
    }
  }
}

function split(text: string | undefined): string[] | undefined {
  return text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
