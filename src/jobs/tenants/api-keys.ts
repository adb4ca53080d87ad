/**
 * API keys (decisions A6): `sp_<id>_<secret>`. The id is the tenant that owns jobs, uploads and secrets; of the secret only an
 * HMAC under a derived key is stored, so neither Redis nor a backup of it lets anybody in.
 */

import { createHmac, createSecretKey, type KeyObject, randomInt, timingSafeEqual } from 'node:crypto';
import { Scope, scopes } from 'soundpost-contract/api-keys';
import { TenantId } from 'soundpost-contract/ids';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import { rotateSecret, stillWorking } from './rotation.ts';

export interface ApiKey {
  /** The tenant. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** Gateway instances that voice messages may be sent as; `*` for any. */
  readonly instances: readonly string[];
  readonly createdAtMs: number;
  /** Since when it only reads and removes, and none of its jobs begins; undefined while it is not paused. */
  readonly pausedAtMs?: number | undefined;
  /** Whoever asks has a secret that was replaced, and works for what is left of its day. */
  readonly isReplaced?: true;
}

export interface StoredApiKey extends ApiKey {
  readonly revoked: boolean;
}

/** What a text says that it is; whether it is, only Redis can tell. */
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

/** The id in a text that has the form of a key, whether it is one or not. */
export function claimedId(text: string): string | undefined {
  return KEY_FORM.exec(text)?.[1];
}

class ApiKeyConflict extends Error {
  override readonly name = 'ApiKeyConflict';
}

export class ApiKeys {
  readonly #redis: Redis;
  /** As an object: of bytes one would be made with each HMAC, which takes seven times as long. */
  readonly #pepper: KeyObject;

  /** @param pepper HMAC key under which secrets are stored. */
  constructor(redis: Redis, pepper: Buffer) {
    this.#redis = redis;
    this.#pepper = createSecretKey(pepper);
  }

  /** Undefined for a text that has not the form of a key. */
  claim(text: string): ClaimedKey | undefined {
    const [, id, secret] = KEY_FORM.exec(text) ?? [];
    return id === undefined || secret === undefined ? undefined : { id, mac: this.#mac(id, secret) };
  }

  /** The key that the text is, or undefined: malformed, unknown, wrong and revoked are the same answer. */
  async authenticate(text: string): Promise<ApiKey | undefined> {
    const claim = this.claim(text);
    if (claim === undefined) {
      return undefined;
    }
    const { id, mac: given } = claim;
    const stored = await this.#read(id);
    // This comparison is always made, also for an unknown id.
    const current = equal(given, stored?.mac ?? '');
    const replaced = stillWorking(stored?.replaced).some((mac) => equal(given, mac));
    if (stored === undefined || stored.revokedAtMs !== undefined || !(current || replaced)) {
      return undefined;
    }
    return { id, ...publicPart(stored) };
  }

  /** Returns the key's text: the only time that it can be seen. */
  async create(key: NewApiKey, createdAtMs = redisNow()): Promise<string> {
    for (;;) {
      const id = randomText(LOWER, 8);
      const secret = randomText(MIXED, SECRET_LENGTH);
      if (await this.#store(id, secret, key, createdAtMs)) {
        return `sp_${id}_${secret}`;
      }
    }
  }

  /**
   * Makes sure that a key which the operator chose exists, with every scope and instance.
   * Throws an {@link ApiKeyConflict} when its id is known with another secret.
   * @returns its id where it was made just now
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
    return stored && { id, ...publicPart(stored), revoked: stored.revokedAtMs !== undefined };
  }

  /** Answers false when there is no such key. */
  async revoke(id: string): Promise<boolean> {
    if ((await this.#read(id)) === undefined) {
      return false;
    }
    await this.#redis.hset(apiKeyKey(id), REVOKED_FIELD, redisNow());
    // Those who are let in for long; the others ask each time. It is revoked also where this is not heard: they look now and then.
    await this.#redis.publish(REVOKED_CHANNEL, id).catch(() => undefined);
    return true;
  }

  /** Answers false when there is no such key. What runs goes on. */
  async pause(id: string): Promise<boolean> {
    if ((await this.#read(id)) === undefined) return false;
    await this.#redis.hsetnx(apiKeyKey(id), PAUSED_FIELD, redisNow());
    return true;
  }

  /** Answers false when there is no such key. */
  async resume(id: string): Promise<boolean> {
    if ((await this.#read(id)) === undefined) return false;
    await this.#redis.hdel(apiKeyKey(id), PAUSED_FIELD);
    return true;
  }

  /**
   * A new secret for the same tenant; the one that it replaces works a day more. Undefined when there is no such key.
   * Throws RATE_LIMITED when five replaced ones still work.
   */
  async rotate(id: string): Promise<string | undefined> {
    const stored = await this.#read(id);
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
      [id, ...Object.entries(fields).flat()],
    );
    return stored === 1;
  }

  async #read(id: string): Promise<z.infer<typeof StoredKey> | undefined> {
    if (!TenantId.safeParse(id).success) {
      return undefined;
    }
    const parsed = StoredKey.safeParse(await this.#redis.hgetall(apiKeyKey(id)));
    return parsed.success ? parsed.data : undefined;
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

/** Of a key, as Redis has them. */
export function readPublicFields(fields: z.input<typeof PublicFields>): Omit<ApiKey, 'id'> {
  return PublicFields.parse(fields);
}

const REVOKED_FIELD = 'revokedAtMs';

/** Channel that tells when a key was revoked; the message is its id. */
export const REVOKED_CHANNEL = ownKey('revoked');

/** Of a key's hash, there while it is paused. */
export const PAUSED_FIELD = 'pausedAtMs';

/** The hash that a key is stored in. */
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
