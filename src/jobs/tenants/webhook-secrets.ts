/** A tenant's webhook secret (decisions D): created on demand, encrypted, overlaps a day. */

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

  /** @param key AES-256 key for data encrypted at rest */
  constructor(redis: Redis, key: Buffer) {
    this.#redis = redis;
    this.#key = key;
  }

  /** The secrets to sign with: the current one, then those replaced less than a day ago. */
  async of(tenant: string): Promise<readonly string[]> {
    const key = webhookSecretKey(tenant);
    let stored = Stored.parse(await this.#redis.hgetall(key));
    if (stored.current === undefined) {
      // Of two concurrent creators, the second reads the first's secret.
      await this.#redis.hsetnx(key, 'current', this.#encrypt(newSecret()));
      stored = Stored.parse(await this.#redis.hgetall(key));
    }
    return [stored.current, ...stillWorking(stored.replaced)]
      .filter((text) => text !== undefined)
      .map((text) => this.#decrypt(text));
  }

  /** A new secret; the old one signs for another day. Throws RATE_LIMITED while five still do. */
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

/** The hash that stores a tenant's secrets. */
export const webhookSecretKey = (tenant: string): string => ownKey('webhook-secret', tenant);

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}
