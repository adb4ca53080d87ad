/**
 * The root secret of this installation: where it comes from, and whether it is the one that everything in Redis was made with. Redis keeps
 * its fingerprint (decision 43): a SECRET_KEY that was lost or replaced stops the start, before every API key fails without a word.
 */
import { join } from 'node:path';
import type { Logger } from 'soundpost-base/logger';
import { isRedisAway, type Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { webhookSecretKey } from '../jobs/tenants/webhook-secrets.ts';
import { type Config, ConfigurationError } from './config.ts';
import { deriveSecrets, readSecretKey, savedSecretKey } from './secrets.ts';

const FINGERPRINT_KEY = ownKey('secret-fingerprint');
/** Of src/jobs/tenants/api-keys.ts; it is there as soon as there was a key. */
const API_KEYS_KEY = ownKey('keys');
/** Of a fingerprint, for people. */
const SHOWN_DIGITS = 8;

const TO_GO_ON =
  'to go on without it, run "soundpost accept-secret" once with the settings of this process: every API key, webhook secret, chat account and signed address of before stays lost';

type Settings = Pick<Config, 'SECRET_KEY' | 'SECRET_KEY_FILE' | 'DATA_DIR' | 'STORAGE_URL'>;

/** `new`: Redis knows of none yet. `none`: neither, and one is to be made. */
type RootSecretState =
  | { readonly kind: 'same' | 'new'; readonly secret: string; readonly origin: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly problem: string; readonly remedy: string };

/** Where the root secret lies when SECRET_KEY is not set. */
export function secretKeyPath({
  SECRET_KEY_FILE,
  DATA_DIR,
}: Pick<Config, 'SECRET_KEY_FILE' | 'DATA_DIR'>): string {
  return SECRET_KEY_FILE ?? join(DATA_DIR, 'secret-key');
}

/** Looks, and changes nothing. */
export async function lookAtRootSecret(config: Settings, redis: Redis): Promise<RootSecretState> {
  // Before the file: whoever left these in Redis had written the file.
  const known = await knownFingerprint(redis);
  const hasKeys = (await redis.exists(API_KEYS_KEY)) === 1;
  const secret = config.SECRET_KEY ?? (await readSecretKey(secretKeyPath(config)));
  if (secret === undefined) {
    return known === undefined && !hasKeys ? { kind: 'none' } : lost(secretKeyPath(config), known);
  }
  const origin = config.SECRET_KEY === undefined ? `the secret in ${secretKeyPath(config)}` : 'SECRET_KEY';
  return compared(secret, origin, known);
}

/**
 * The root secret, the same in all processes over this Redis. Where there is none yet it is made; the first process to start leaves the
 * fingerprint in Redis, and the others compare.
 * @throws ConfigurationError when it was lost, or is not the one of before
 */
export async function agreedRootSecret(config: Settings, redis: Redis, logger: Logger): Promise<string> {
  const state = await lookAtRootSecret(config, redis);
  if (state.kind === 'refused') throw refusal(state);
  if (state.kind === 'same') return state.secret;
  const secret = state.kind === 'new' ? state.secret : await madeSecret(config, logger);
  try {
    await redis.set(FINGERPRINT_KEY, deriveSecrets(secret).fingerprint, 'NX');
  } catch (error) {
    if (!(error instanceof Error && isRedisAway(error))) throw error;
    logger.warn({ error: error.message }, 'the fingerprint of SECRET_KEY could not be written to Redis');
    return secret;
  }
  // Of two that start at once with different ones, one was first.
  const origin = state.kind === 'new' ? state.origin : `the secret in ${secretKeyPath(config)}`;
  const settled = compared(secret, origin, await knownFingerprint(redis));
  if (settled.kind === 'refused') throw refusal(settled);
  return secret;
}

/**
 * Makes Redis take the secret of this configuration from now on; where there is none, one is made.
 * @returns the fingerprints, shortened; `before` is undefined where Redis knew of none
 */
export async function acceptRootSecret(
  config: Settings,
  redis: Redis,
  logger: Logger,
): Promise<{ readonly before: string | undefined; readonly now: string }> {
  const before = await knownFingerprint(redis);
  const saved = config.SECRET_KEY ?? (await readSecretKey(secretKeyPath(config)));
  const { fingerprint } = deriveSecrets(saved ?? (await madeSecret(config, logger)));
  await redis.set(FINGERPRINT_KEY, fingerprint);
  if (before !== fingerprint) {
    // Nobody can read them any more; each tenant's next webhook makes another.
    const tenants = await redis.smembers(API_KEYS_KEY);
    await Promise.all(tenants.map((id) => redis.del(webhookSecretKey(id))));
  }
  return { before: before && shown(before), now: shown(fingerprint) };
}

async function knownFingerprint(redis: Redis): Promise<string | undefined> {
  return (await redis.get(FINGERPRINT_KEY)) ?? undefined;
}

async function madeSecret(config: Settings, logger: Logger): Promise<string> {
  const path = secretKeyPath(config);
  if (config.SECRET_KEY_FILE !== undefined && config.STORAGE_URL !== undefined) {
    throw new ConfigurationError(
      `SECRET_KEY_FILE: ${path} is not there, and none is made beside a bucket (STORAGE_URL), where each machine would make its own: set SECRET_KEY to the same value everywhere`,
    );
  }
  const secret = await savedSecretKey(path);
  logger.info({ path }, 'this is the root secret from now on: keep it with the backups');
  return secret;
}

function compared(secret: string, origin: string, known: string | undefined): RootSecretState {
  const { fingerprint } = deriveSecrets(secret);
  if (known === undefined) return { kind: 'new', secret, origin };
  if (known === fingerprint) return { kind: 'same', secret, origin };
  return {
    kind: 'refused',
    problem: `${origin} (fingerprint ${shown(fingerprint)}) is not the SECRET_KEY that Redis knows (fingerprint ${shown(known)} in ${FINGERPRINT_KEY})`,
    remedy: `set SECRET_KEY to that one again; ${TO_GO_ON}`,
  };
}

function lost(path: string, known: string | undefined): RootSecretState {
  const which = known === undefined ? '' : ` (fingerprint ${shown(known)} in ${FINGERPRINT_KEY})`;
  return {
    kind: 'refused',
    problem: `SECRET_KEY is not set and ${path} is not there, but Redis has data that was made with a secret${which}`,
    remedy: `restore the file, or set SECRET_KEY to what it held; ${TO_GO_ON}`,
  };
}

function refusal({ problem, remedy }: { readonly problem: string; readonly remedy: string }): Error {
  return new ConfigurationError(`${problem}: ${remedy}`);
}

function shown(fingerprint: string): string {
  return fingerprint.slice(0, SHOWN_DIGITS);
}
