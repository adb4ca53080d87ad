/** Makes and verifies signatures, and compares secrets. */
import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';

// Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body` with `whsec_<base64>` secrets, for
// both senders and the one receiver. Tests verify with the specification's own library.

interface SignedHeaders {
  readonly 'webhook-id': string;
  /** Unix seconds of the attempt. */
  readonly 'webhook-timestamp': string;
  /** One signature per secret, separated by spaces. */
  readonly 'webhook-signature': string;
}

const SECRET_PREFIX = 'whsec_';
const SCHEME = 'v1,';
/** The specification leaves the tolerance open; its libraries use five minutes. */
const TOLERANCE_SECONDS = 5 * 60;

/** Whether the secret made one of the signatures, recently. */
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

/** The MAC of a webhook. */
export function webhookMac(secret: string, id: string, timestamp: string, body: string): Buffer {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
}

/** Takes a time that depends on neither the content nor the length of `given`. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

// Signed download URLs (decisions A4 and A8): an HMAC over the job, the file and the expiry, in the
// query.

type Rendition = 'output' | 'voice';

/** A file of a job: its first one, its voice message, or the output with this name. */
export type WantedFile = Rendition | { readonly name: string };
type SignatureVerdict = 'valid' | 'invalid' | 'expired';

export class UrlSigner {
  /** A KeyObject: with raw bytes, each signature takes seven times as long. */
  readonly #key: KeyObject;
  readonly #publicUrl: string;

  constructor(key: Buffer, publicUrl: string) {
    this.#key = createSecretKey(key);
    this.#publicUrl = publicUrl;
  }

  /** The absolute URL by which anyone can fetch the file until `expiresAtMs`. */
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
