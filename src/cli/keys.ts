/** `keys create | list | revoke | rotate`: API keys from the command line (decisions A6), beside a running service or without one. */
import { join } from 'node:path';
import { loadConfig } from '../config.ts';
import { ServiceError } from '../contract/errors.ts';
import { Scope, scopes } from '../contract/scopes.ts';
import { type AuditLog, createAuditLog } from '../observe/logger.ts';
import { runningEmbeddedRedis } from '../redis/embedded.ts';
import { openResources, openStores } from '../resources.ts';
import { type ApiKeys, claimedId } from '../tenants/api-keys.ts';
import { UsageError } from './ending.ts';

export interface KeyChoices {
  readonly name: string;
  /** Comma-separated; all when left out. */
  readonly scopes?: string;
  /** Comma-separated names of gateway instances, `*` for any; none when left out. */
  readonly instances?: string;
  readonly json?: boolean;
}

/** @param hint takes a sentence about a key that cannot do what its scopes promise */
export async function createKey(choices: KeyChoices, hint: (sentence: string) => void): Promise<string> {
  const parsed = Scope.array().safeParse(split(choices.scopes) ?? scopes);
  if (!parsed.success) {
    throw new UsageError(`--scopes: each must be one of ${scopes.join(', ')}`);
  }
  const wanted = { name: choices.name, scopes: parsed.data, instances: split(choices.instances) ?? [] };
  const key = await withKeys(async (keys, audit) => {
    const made = await keys.create(wanted);
    audit({ event: 'key created', key: claimedId(made) });
    return made;
  });
  if (wanted.scopes.includes('voice') && wanted.instances.length === 0) {
    hint('this key may send voice messages, but as no instance: name them with --instances, or give *');
  }
  return choices.json ? JSON.stringify({ key, ...wanted }) : key;
}

export async function listKeys(asJson: boolean): Promise<string> {
  const keys = await withKeys((store) => store.list());
  if (asJson) {
    return JSON.stringify(keys);
  }
  return keys
    .map(({ id, name, revoked, ...key }) => `${id}  ${revoked ? 'revoked' : key.scopes.join(',')}  ${name}`)
    .join('\n');
}

export async function revokeKey(id: string): Promise<string> {
  const revoked = await withKeys(async (keys, audit) => {
    const known = await keys.revoke(id);
    if (known) {
      audit({ event: 'key revoked', key: id });
    }
    return known;
  });
  if (!revoked) {
    throw new UsageError(`there is no key ${id}; keys list shows those that there are`);
  }
  return `${id} is revoked`;
}

export async function rotateKey(id: string): Promise<string> {
  const key = await withKeys(async (keys, audit) => {
    const made = await keys.rotate(id).catch((error: unknown) => {
      throw error instanceof ServiceError ? new UsageError(error.message) : error;
    });
    if (made !== undefined) {
      audit({ event: 'key rotated', key: id });
    }
    return made;
  });
  if (key === undefined) {
    throw new UsageError(`there is no key ${id} that could be rotated; keys list shows those that there are`);
  }
  return key;
}

/** Uses the Redis of a service that runs over the same DATA_DIR, else starts one for the moment. */
async function withKeys<Result>(work: (keys: ApiKeys, audit: AuditLog) => Promise<Result>): Promise<Result> {
  const config = loadConfig();
  const running = config.REDIS_URL ?? (await runningEmbeddedRedis(join(config.DATA_DIR, 'redis')));
  const resources = await openResources({ ...config, REDIS_URL: running }, []);
  const stores = openStores(resources);
  try {
    return await work(stores.keys, createAuditLog(resources.logger));
  } finally {
    await stores.close();
    await resources.close();
  }
}

function split(text: string | undefined): string[] | undefined {
  return text
    ?.split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
