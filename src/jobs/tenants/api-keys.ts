/**
 * API keys (decisions A6): `sp_<id>_<secret>`. The id is the tenant that owns jobs, uploads and
 * secrets. Only an HMAC of the secret is stored, so Redis or its backup grants no access.
 */

import { createHmac, createSecretKey, type KeyObject, randomInt, timingSafeEqual } from 'node:crypto';
import { Scope, scopes } from 'soundpost-contract/api-keys';
import { TenantId } from 'soundpost-contract/ids';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { readHash, readValue, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { rotateSecret, stillWorking } from './rotation.ts';

export interface ApiKey {
  /** The tenant. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Gateway instances that it can send voice messages as; `*` for any. */
  readonly instances: readonly string[];
  readonly createdAtMs: number;
  /** While paused, it only reads and deletes, and its jobs do not start; undefined if active. */
  readonly pausedAtMs?: number | undefined;
  /** The request used a replaced secret, which works until its day is over. */
  readonly isReplaced?: true;
}

export interface StoredApiKey extends ApiKey {
  readonly revoked: boolean;
  /** Its record cannot be read: it opens nothing, and counts as one that may do everything. */
  readonly isUnreadable?: true;
}

/** What a text claims to be; only Redis can verify it. */
export interface ClaimedKey {
  readonly id: string;
  /** HMAC of the secret, as it would be stored. */
  readonly mac: string;
}

type NewApiKey = Pick<ApiKey, 'name' | 'scopes' | 'instances'>;

const KEY_FORM = /^sp_([a-z0-9]{8})_([A-Za-z0-9]{32,64})$/;
const SECRET_LENGTH = 40;
const LOWER = 'abcdefghijklmnopqrstuvwxyz0123456789';
const MIXED = `${LOWER}ABCDEFGHIJKLMNOPQRSTUVWXYZ`;

const list = z.string().transform((text) => (text === '' ? [] : text.split(',')));

const PublicFields = z.object({
  name: z.string(),
  scopes: list.pipe(z.array(Scope)),
  instances: list,
  createdAtMs: z.coerce.number(),
  pausedAtMs: z.coerce.number().optional(),
});
const StoredKey = PublicFields.extend({
  mac: z.string(),
  replaced: z.string().optional(),
  revokedAtMs: z.coerce.number().optional(),
});

const create = loadScript(new URL('./lua/api-key-create.lua', import.meta.url));
const undo = loadScript(new URL('./lua/api-key-undo.lua', import.meta.url));

/** The id in a text that looks like a key, valid or not. */
export function claimedId(text: string): string | undefined {
  return KEY_FORM.exec(text)?.[1];
}

class ApiKeyConflict extends Error {
  override readonly name = 'ApiKeyConflict';
}

export class ApiKeys {
  readonly #redis: Redis;
  /** An object, because creating one from bytes for each HMAC takes seven times as long. */
  readonly #pepper: KeyObject;

  /** @param pepper HMAC key under which secrets are stored. */
  constructor(redis: Redis, pepper: Buffer) {
    this.#redis = redis;
    this.#pepper = createSecretKey(pepper);
  }

  /** Undefined for a text that does not look like a key. */
  claim(text: string): ClaimedKey | undefined {
    const [, id, secret] = KEY_FORM.exec(text) ?? [];
    return id === undefined || secret === undefined ? undefined : { id, mac: this.#mac(id, secret) };
  }

  /** The key, or undefined alike if malformed, unknown, wrong or revoked. */
  async authenticate(text: string): Promise<ApiKey | undefined> {
    const claim = this.claim(text);
    return claim && this.check(claim);
  }

  /** The key that is claimed, or undefined if unknown, wrong or revoked. */
  async check({ id, mac: given }: ClaimedKey): Promise<ApiKey | undefined> {
    const stored = await this.#readable(id);
    // Always compares, even for an unknown id.
    const current = equal(given, stored?.mac ?? '');
    const replaced = stillWorking(stored?.replaced).some((mac) => equal(given, mac));
    if (stored === undefined || stored.revokedAtMs !== undefined || !(current || replaced)) {
      return undefined;
    }
    return { id, ...publicPart(stored), ...(current ? {} : { isReplaced: true }) };
  }

  /** Returns the key's text, which cannot be read again. */
  async create(key: NewApiKey, createdAtMs = redisNow()): Promise<string> {
    for (;;) {
      const id = randomText(LOWER, 8);
      const secret = randomText(MIXED, SECRET_LENGTH);
      const stored = await this.#store(id, secret, key, createdAtMs).catch((error: unknown) => {
        // Redis may only be late, and nobody knows the secret.
        undo
          .run(this.#redis, [apiKeyKey(id), ownKey('keys')], [id, this.#mac(id, secret)])
          .catch(() => undefined);
        throw error;
      });
      if (stored) return `sp_${id}_${secret}`;
    }
  }

  /**
   * Ensures that the operator's own key exists, with every scope and instance. Throws an {@link
   * ApiKeyConflict} if its id exists with another secret.
   * @returns its id if it was created now
   */
  async bootstrap(text: string): Promise<string | undefined> {
    const [, id, secret] = KEY_FORM.exec(text) ?? [];
    if (id === undefined || secret === undefined) {
      throw new Error(
        'the bootstrap key must be of the form sp_<8 of a-z 0-9>_<32 to 64 letters and digits>',
      );
    }
    const created = await this.#store(id, secret, { name: 'bootstrap', scopes, instances: ['*'] });
    if (!created && (await this.authenticate(text)) === undefined) {
      throw new ApiKeyConflict(
        (await this.find(id))?.revoked === true
          ? `BOOTSTRAP_API_KEY: the key ${id} was revoked; choose another id, or leave the variable out`
          : `BOOTSTRAP_API_KEY: the key ${id} exists with another secret, or was made under another SECRET_KEY; give the right one, or choose another id`,
      );
    }
    return created ? id : undefined;
  }

  async list(): Promise<StoredApiKey[]> {
    const ids = await this.#redis.smembers(ownKey('keys'));
    const keys = await Promise.all(ids.sort().map((id) => this.find(id)));
    return keys.filter((key) => key !== undefined);
  }

  async find(id: string): Promise<StoredApiKey | undefined> {
    const stored = await this.#read(id);
    if (stored === 'unreadable') return unreadable(id);
    return stored && { id, ...publicPart(stored), revoked: stored.revokedAtMs !== undefined };
  }

  /** False if there is no such key. One that cannot be read is removed. */
  async revoke(id: string): Promise<boolean> {
    const stored = await this.#read(id);
    if (stored === undefined) {
      return false;
    }
    await (stored === 'unreadable'
      ? this.#redis.multi().del(apiKeyKey(id)).srem(ownKey('keys'), id).exec()
      : this.#redis.hset(apiKeyKey(id), REVOKED_FIELD, redisNow()));
    // For open streams; other requests check anyway. Streams that miss this check periodically.
    await this.#redis.publish(REVOKED_CHANNEL, id).catch(() => undefined);
    return true;
  }

  /** False if there is no such key. Running jobs continue. */
  async pause(id: string): Promise<boolean> {
    if ((await this.#readable(id)) === undefined) return false;
    await this.#redis.hsetnx(apiKeyKey(id), PAUSED_FIELD, redisNow());
    return true;
  }

  /** False if there is no such key. */
  async resume(id: string): Promise<boolean> {
    if ((await this.#readable(id)) === undefined) return false;
    await this.#redis.hdel(apiKeyKey(id), PAUSED_FIELD);
    return true;
  }

  /**
   * A new secret for the tenant; the old one works for another day. Undefined for an unknown key.
   * Throws RATE_LIMITED while five replaced secrets still work.
   */
  async rotate(id: string): Promise<string | undefined> {
    const stored = await this.#readable(id);
    if (stored === undefined || stored.revokedAtMs !== undefined) {
      return undefined;
    }
    const secret = randomText(MIXED, SECRET_LENGTH);
    await rotateSecret(this.#redis, apiKeyKey(id), 'mac', this.#mac(id, secret));
    return `sp_${id}_${secret}`;
  }

  async #store(id: string, secret: string, key: NewApiKey, createdAtMs = redisNow()): Promise<boolean> {
    const fields = {
      mac: this.#mac(id, secret),
      name: key.name,
      scopes: key.scopes.join(','),
      instances: key.instances.join(','),
      createdAtMs: String(createdAtMs),
    };
    const stored = await create.run(
      this.#redis,
      [apiKeyKey(id), ownKey('keys')],
      [id, ...Object.entries(withEdition(fields)).flat()],
    );
    return stored === 1;
  }

  async #read(id: string): Promise<z.infer<typeof StoredKey> | 'unreadable' | undefined> {
    if (!TenantId.safeParse(id).success) {
      return undefined;
    }
    return unlessUnreadable(
      () => readHash(this.#redis, apiKeyKey(id), StoredKey),
      () => 'unreadable' as const,
    );
  }

  async #readable(id: string): Promise<z.infer<typeof StoredKey> | undefined> {
    const stored = await this.#read(id);
    return stored === 'unreadable' ? undefined : stored;
  }

  #mac(id: string, secret: string): string {
    return createHmac('sha256', this.#pepper).update(`${id}:${secret}`).digest('hex');
  }
}

function publicPart({
  name,
  scopes,
  instances,
  createdAtMs,
  pausedAtMs,
}: z.infer<typeof StoredKey>): Omit<ApiKey, 'id'> {
  return { name, scopes, instances, createdAtMs, ...(pausedAtMs !== undefined && { pausedAtMs }) };
}

function unreadable(id: string): StoredApiKey {
  const all = { scopes, instances: ['*'] };
  return { ...{ id, name: 'unreadable record', ...all, createdAtMs: 0 }, revoked: false, isUnreadable: true };
}

/** Fields as Redis stores them. @throws UnreadableRecord */
export function readPublicFields(fields: z.input<typeof PublicFields>): Omit<ApiKey, 'id'> {
  return readValue(PublicFields, fields);
}

const REVOKED_FIELD = 'revokedAtMs';

/** Announces a revoked key; the message is its id. */
export const REVOKED_CHANNEL = ownKey('revoked');

/** Field of a key's hash, set while it is paused. */
export const PAUSED_FIELD = 'pausedAtMs';

/** The hash that stores a key. */
export function apiKeyKey(id: string): string {
  return ownKey('key', id);
}

function equal(given: string, stored: string): boolean {
  const expected = Buffer.from(stored.padEnd(given.length, '0'));
  return (
    timingSafeEqual(Buffer.from(given), expected.subarray(0, given.length)) && stored.length === given.length
  );
}

function randomText(alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}
