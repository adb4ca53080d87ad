/** Signatures that several parts make or verify, and how two secrets are compared. */
import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

// Those of Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`, with `whsec_<base64>` secrets. Both of our
// senders and the one receiver use these; the tests verify with the specification's own library.

interface SignedHeaders {
  readonly 'webhook-id': string;
  /** Unix seconds of the attempt. */
  readonly 'webhook-timestamp': string;
  /** A signature for each secret, separated by spaces. */
  readonly 'webhook-signature': string;
}

const SECRET_PREFIX = 'whsec_';
const SCHEME = 'v1,';
/** The specification leaves the tolerance open; five minutes is what its libraries use. */
const TOLERANCE_SECONDS = 5 * 60;

/** Whether one of the signatures was made with the secret, and lately. */
export function isWebhookSigned(
  headers: SignedHeaders,
  body: string,
  secret: string,
  nowMs: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp } = headers;
  const expected = webhookMac(secret, id, timestamp, body);
  const lately = Math.abs(nowMs / 1000 - Number(timestamp)) < TOLERANCE_SECONDS;
  return (
    lately &&
    headers['webhook-signature']
      .split(' ')
      .filter((part) => part.startsWith(SCHEME))
      .map((part) => Buffer.from(part.slice(SCHEME.length), 'base64'))
      .some((given) => given.length === expected.length && timingSafeEqual(given, expected))
  );
}

/** What a signature is made of. */
export function webhookMac(secret: string, id: string, timestamp: string, body: string): Buffer {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
}

/** Two secrets compared. Takes a time that depends on neither the content nor the length of what was given. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

// Signed download addresses (decisions A4 and A8): an HMAC over the job, what is fetched and the
// expiry, in the query.

type Rendition = 'output' | 'voice';

/** What is fetched of a job: its first file, that of its voice message, or that of the output with this name. */
export type WantedFile = Rendition | { readonly name: string };
type SignatureVerdict = 'valid' | 'invalid' | 'expired';

export class UrlSigner {
  /** As an object: of bytes one would be made with each signature, which takes seven times as long. */
  readonly #key: KeyObject;
  readonly #publicUrl: string;

  constructor(key: Buffer, publicUrl: string) {
    this.#key = createSecretKey(key);
    this.#publicUrl = publicUrl;
  }

  /** The absolute address under which anybody may fetch the file until `expiresAtMs`. */
  downloadUrl(jobId: string, expiresAtMs: number, wanted: WantedFile = 'output'): string {
    const expires = String(Math.floor(expiresAtMs / 1000));
    const query = new URLSearchParams({
      ...(wanted === 'voice' ? { rendition: wanted } : {}),
      ...(typeof wanted === 'object' ? wanted : {}),
      expires,
      signature: this.#sign(jobId, wanted, expires),
    });
    return `${this.#publicUrl}/v1/download/${jobId}?${query}`;
  }

  verify(
    jobId: string,
    wanted: WantedFile,
    expires: string,
    signature: string,
    nowMs: number,
  ): SignatureVerdict {
    const expected = Buffer.from(this.#sign(jobId, wanted, expires));
    const given = Buffer.from(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      return 'invalid';
    }
    return Number(expires) * 1000 > nowMs ? 'valid' : 'expired';
  }

  #sign(jobId: string, wanted: WantedFile, expires: string): string {
    const what = typeof wanted === 'string' ? wanted : `output:${wanted.name}`;
    return createHmac('sha256', this.#key).update(`${jobId}\n${what}\n${expires}`).digest('hex');
  }
}
