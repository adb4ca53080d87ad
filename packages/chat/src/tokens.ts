/** Hashes of tokens, session keys and derived ids. */
import { createHmac, randomBytes } from 'node:crypto';

export class SecretHasher {
  readonly #pepper: Buffer;

  constructor(pepper: Buffer) {
    this.#pepper = pepper;
  }

  /** HMAC-SHA256, hex: stored instead of the secret. The pepper makes a leaked database useless. */
  hash(purpose: string, secret: string): string {
    return createHmac('sha256', this.#pepper).update(`${purpose}\0${secret}`).digest('hex');
  }
}

/** 256 random bits as 43 characters that need no escaping anywhere. */
export function randomToken(): string {
  return randomBytes(32).toString('base64url');
}
