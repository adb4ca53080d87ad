/** A tenant's webhook secret (decisions D): made when it is first needed, encrypted at rest, rotated with a day of overlap. */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { z } from 'zod';
import { rotateSecret, stillWorking } from './rotation.ts';

/** Standard Webhooks asks for 24 to 64 random bytes. */
const SECRET_BYTES = 32;
/** AES-256-GCM: a nonce of 96 bits (NIST SP 800-38D), a tag of 128. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const Stored = z.object({
  current: z.string().optional(),
  replaced: z.string().optional(),
});

export class WebhookSecrets {
  readonly #redis: Redis;
  readonly #key: Buffer;

  /** @param key AES-256 key of what is encrypted at rest */
  constructor(redis: Redis, key: Buffer) {
    this.#redis = redis;
    this.#key = key;
  }

  /** The secrets to sign with, the current one first, then each that was replaced less than a day ago. */
  async of(tenant: string): Promise<readonly string[]> {
    const key = webhookSecretKey(tenant);
    let stored = Stored.parse(await this.#redis.hgetall(key));
    if (stored.current === undefined) {
      // Of two who make the first one at once, the second reads the first's.
      await this.#redis.hsetnx(key, 'current', this.#encrypt(newSecret()));
      stored = Stored.parse(await this.#redis.hgetall(key));
    }
    return [stored.current, ...stillWorking(stored.replaced)]
      .filter((text) => text !== undefined)
      .map((text) => this.#decrypt(text));
  }

  /** A new secret; the one that it replaces keeps signing for a day. Throws RATE_LIMITED when five still do. */
  async rotate(tenant: string): Promise<string> {
    const secret = newSecret();
    await rotateSecret(this.#redis, webhookSecretKey(tenant), 'current', this.#encrypt(secret));
    return secret;
  }

  #encrypt(text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce);
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
  }

  #decrypt(text: string): string {
    const bytes = Buffer.from(text, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    const opened = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([opened, decipher.final()]).toString('utf8');
  }
}

/** The hash that a tenant's secrets are stored in. */
export const webhookSecretKey = (tenant: string): string => ownKey('webhook-secret', tenant);

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}
