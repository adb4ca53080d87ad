/** A tenant's webhook secret (decisions D): created on demand, encrypted, overlaps a day. */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { readHash, UnreadableRecord, unlessUnreadable, withEdition } from 'soundpost-kit/redis/record';
import { z } from 'zod';
import { rotateSecret, stillWorking, worksUntilMs } from './rotation.ts';

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

  /**
   * The secrets to sign with: the current one, then those replaced less than a day ago.
   * @throws UnreadableRecord if the current one cannot be read; {@link rotate} replaces it
   */
  async of(tenant: string): Promise<readonly string[]> {
    const key = webhookSecretKey(tenant);
    let stored = await readHash(this.#redis, key, Stored);
    if (stored?.current === undefined) {
      // Of two concurrent creators, the second reads the first's secret.
      await this.#redis.hsetnx(key, 'current', this.#encrypt(newSecret()));
      await this.#redis.hset(key, withEdition({}));
      stored = await readHash(this.#redis, key, Stored);
    }
    const current = this.#decrypt(stored?.current ?? '');
    // A replaced one that cannot be read signs nothing.
    const replaced = stillWorking(stored?.replaced).map((text) =>
      unlessUnreadable(
        () => this.#decrypt(text),
        () => undefined,
      ),
    );
    return [current, ...(await Promise.all(replaced)).filter((secret) => secret !== undefined)];
  }

  /** Until when the last replaced secret signs, ms; undefined if none does. */
  async replacedUntilMs(tenant: string): Promise<number | undefined> {
    return worksUntilMs((await readHash(this.#redis, webhookSecretKey(tenant), Stored))?.replaced);
  }

  /** A new secret; the old one signs for another day. Throws RATE_LIMITED while five still do. */
  async rotate(tenant: string): Promise<string> {
    const secret = newSecret();
    const key = webhookSecretKey(tenant);
    const isReadable = await unlessUnreadable(
      async () => (await readHash(this.#redis, key, Stored)) !== undefined,
      () => this.#redis.del(key),
    );
    await rotateSecret(this.#redis, key, 'current', this.#encrypt(secret));
    if (isReadable !== true) await this.#redis.hset(key, withEdition({}));
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
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const opened = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString('utf8');
    } catch (cause) {
      throw new UnreadableRecord(
        'the webhook secret is damaged, or was sealed under another SECRET_KEY',
        cause,
      );
    }
  }
}

/** The hash that stores a tenant's secrets. */
export const webhookSecretKey = (tenant: string): string => ownKey('webhook-secret', tenant);

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}
