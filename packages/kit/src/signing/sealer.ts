/** Encrypts secrets at rest: passwords, webhook secrets, session keys (decisions E, SECRET_KEY). */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** AES-256-GCM: a nonce of 96 bits (NIST SP 800-38D), a tag of 128. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class Sealer {
  readonly #key: Buffer;

  /** @param key 32 bytes */
  constructor(key: Buffer) {
    this.#key = key;
  }

  /** @param label names the owner and the content, and is needed to open it: prevents swapping */
  seal(label: string, text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(label));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
  }

  /** Throws if it was sealed with another key or label, or has changed. */
  open(label: string, sealed: string): string {
    const bytes = Buffer.from(sealed, 'base64');
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(label))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const opened = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]).toString('utf8');
    } catch (cause) {
      throw new SealBroken(`${label} cannot be read: it was encrypted under another SECRET_KEY`, { cause });
    }
  }
}

/** The value was sealed under another root secret, or is no sealed value. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken';
}
