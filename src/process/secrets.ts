/**
 * Every secret derives from one root (decisions E, SECRET_KEY), so processes on different machines
 * share a single value. HKDF-SHA256 (RFC 5869) with a label for each purpose.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'soundpost-base/logger';
import { isRedisAway } from 'soundpost-kit/observe/away';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { webhookSecretKey } from '../jobs/tenants/webhook-secrets.ts';
import { type Config, ConfigurationError } from './config.ts';

interface DerivedSecrets {
  /** HMAC key under which API keys and tokens are stored. */
  readonly keyPepper: Buffer;
  /** HMAC key of signed download URLs. */
  readonly urlSigning: Buffer;
  /** AES-256 key for what is encrypted at rest: webhook secrets, transport passwords. */
  readonly encryption: Buffer;
  /** The gateway's own key, unless the operator chose one. */
  readonly gatewayApiKey: string;
  /** Standard Webhooks secret of the events that the gateway posts to the API. */
  readonly gatewayEventsSecret: string;
  /** Identifies a root without revealing it: 32 hexadecimal digits, kept in Redis. */
  readonly fingerprint: string;
}

const FINGERPRINT_DIGITS = 32;

export function deriveSecrets(secretKey: string): DerivedSecrets {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secretKey, '', `soundpost ${purpose}`, 32));
  return {
    keyPepper: derive('api keys'),
    urlSigning: derive('signed urls'),
    encryption: derive('encryption at rest'),
    gatewayApiKey: derive('gateway api key').toString('hex'),
    gatewayEventsSecret: `whsec_${derive('gateway events').toString('base64')}`,
    fingerprint: derive('fingerprint').toString('hex').slice(0, FINGERPRINT_DIGITS),
  };
}

/** The default time for another process to write the file that it created. */
const WRITTEN_WITHIN_MS = 5000;
const LOOK_EACH_MS = 20;
const LEAST_CHARACTERS = 32;

/**
 * The root secret where none was configured: created once in the file, mode 0600. The file is
 * created exclusively, so of two processes that start at once the second waits for the first.
 */
export async function savedSecretKey(path: string, withinMs = WRITTEN_WITHIN_MS): Promise<string> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile(randomBytes(32).toString('hex'));
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!isCoded(error, 'EEXIST')) throw error;
  }
  const secret = await readSecretKey(path, withinMs);
  if (secret === undefined) throw new Error(`${path} was removed while it was read`);
  return secret;
}

/** The file's content, once written; undefined without a file. */
export async function readSecretKey(path: string, withinMs = WRITTEN_WITHIN_MS): Promise<string | undefined> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isCoded(error, 'ENOENT')) return undefined;
      throw error;
    });
    const secret = text?.trim();
    if (secret === undefined || secret.length >= LEAST_CHARACTERS) return secret;
    if (performance.now() > untilMs) {
      throw new Error(
        `${path} does not hold a secret of at least 32 bytes; restore it from a backup, or remove it`,
      );
    }
    await wait(LOOK_EACH_MS);
  }
}

function isCoded(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

// The root secret of this installation. Redis keeps its fingerprint (decision 43): a lost or
// replaced SECRET_KEY stops the start, instead of every API key failing without a reason.

const FINGERPRINT_KEY = ownKey('secret-fingerprint');
/** Also in src/jobs/tenants/api-keys.ts; exists once there was an API key. */
const API_KEYS_KEY = ownKey('keys');
/** Digits of a fingerprint shown to people. */
const SHOWN_DIGITS = 8;

const TO_GO_ON =
  'to go on without it, run "soundpost accept-secret" once with the settings of this process; then "soundpost keys rotate <id>" gives each key a new secret, and it keeps its jobs. docs/how-to/disasters.md says what stays lost';

type Settings = Pick<Config, 'SECRET_KEY' | 'SECRET_KEY_FILE' | 'DATA_DIR' | 'STORAGE_URL'>;

/** `new`: Redis has no fingerprint yet. `none`: no secret either; one must be created. */
type RootSecretState =
  | { readonly kind: 'same' | 'new'; readonly secret: string; readonly origin: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly problem: string; readonly remedy: string };

/** The secret's file when SECRET_KEY is not set. */
export function secretKeyPath({
  SECRET_KEY_FILE,
  DATA_DIR,
}: Pick<Config, 'SECRET_KEY_FILE' | 'DATA_DIR'>): string {
  return SECRET_KEY_FILE ?? join(DATA_DIR, 'secret-key');
}

/** Read-only. */
export async function lookAtRootSecret(config: Settings, redis: Redis): Promise<RootSecretState> {
  // Redis first: the process that left these had written the file before.
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
 * The root secret, the same in all processes of this Redis; created where there is none. The first
 * process to start stores the fingerprint, the others compare.
 * @throws ConfigurationError if the secret is lost or has changed
 */
export async function agreedRootSecret(config: Settings, redis: Redis, logger: Logger): Promise<string> {
  const state = await lookAtRootSecret(config, redis);
  if (state.kind === 'refused') throw refusal(state);
  if (state.kind === 'same') return state.secret;
  const secret = state.kind === 'new' ? state.secret : await madeSecret(config, logger);
  try {
    await redis.set(FINGERPRINT_KEY, deriveSecrets(secret).fingerprint, 'NX');
  } catch (error) {
    if (!isRedisAway(error)) throw error;
    logger.warn({ err: error }, 'the fingerprint of SECRET_KEY could not be written to Redis');
    return secret;
  }
  // Of two that start at once with different secrets, the first wins.
  const origin = state.kind === 'new' ? state.origin : `the secret in ${secretKeyPath(config)}`;
  const settled = compared(secret, origin, await knownFingerprint(redis));
  if (settled.kind === 'refused') throw refusal(settled);
  return secret;
}

/**
 * Makes Redis accept this configuration's secret from now on; creates one where there is none.
 * @returns the fingerprints, shortened; `before` is undefined where Redis had none
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
    // They cannot be decrypted any more; each tenant's next webhook creates a new one.
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
