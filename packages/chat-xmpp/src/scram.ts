/**
 * The client side of SCRAM-SHA-1 (RFC 5802) with Node's own key derivation. The library's needs a
 * second or more per account, which delays a failover: another gateway logs in all accounts.
 */
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';

const deriveKey = promisify(pbkdf2);

export const SCRAM = 'SCRAM-SHA-1';
const HASH = 'sha1';
const KEY_BYTES = 20;
/** No channel binding: `n,,`. */
const GS2_HEADER = 'n,,';
/** Servers ask for 4,096 to about 100,000; more would only keep this process busy. */
const MOST_ROUNDS = 1_000_000;

interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** In the form that the library's `saslmechanisms` expects. */
export class Scram {
  readonly name = SCRAM;
  readonly clientFirst = true;
  readonly #nonce: string;
  #serverFirst = '';

  /** @param nonce random; tests pass a fixed one */
  constructor(nonce = randomBytes(16).toString('hex')) {
    this.#nonce = nonce;
  }

  challenge(text: string): this {
    this.#serverFirst = text;
    return this;
  }

  /** Throws Error for a challenge that does not match this login. */
  async response({ username, password }: Credentials): Promise<string> {
    // RFC 5802, 5.1: `=` and `,` in the name are escaped.
    const name = username.replaceAll('=', '=3D').replaceAll(',', '=2C');
    const clientFirst = `n=${name},r=${this.#nonce}`;
    if (this.#serverFirst === '') {
      return `${GS2_HEADER}${clientFirst}`;
    }
    const { nonce, salt, rounds } = this.#parse();
    const clientFinal = `c=${Buffer.from(GS2_HEADER).toString('base64')},r=${nonce}`;
    const salted = await deriveKey(password, salt, rounds, KEY_BYTES, HASH);
    const clientKey = hmac(salted, 'Client Key');
    const storedKey = createHash(HASH).update(clientKey).digest();
    const signature = hmac(storedKey, `${clientFirst},${this.#serverFirst},${clientFinal}`);
    const proof = clientKey.map((byte, index) => byte ^ (signature[index] ?? 0));
    return `${clientFinal},p=${Buffer.from(proof).toString('base64')}`;
  }

  #parse(): { nonce: string; salt: Buffer; rounds: number } {
    const [, nonce = '', salt = '', rounds = ''] =
      /^r=([^,]+),s=([A-Za-z0-9+/=]+),i=(\d{1,7})(?:,|$)/.exec(this.#serverFirst) ?? [];
    const count = Number(rounds);
    if (!nonce.startsWith(this.#nonce) || nonce === this.#nonce || count < 1 || count > MOST_ROUNDS) {
      throw new Error('the server’s challenge does not answer this login (RFC 5802)');
    }
    return { nonce, salt: Buffer.from(salt, 'base64'), rounds: count };
  }
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac(HASH, key).update(text).digest();
}
