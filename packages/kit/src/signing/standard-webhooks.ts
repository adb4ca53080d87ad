/**
 * Signatures of Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`, with `whsec_<base64>` secrets. Both of our
 * senders and the one receiver use these; the tests verify with the specification's own library.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

export interface SignedHeaders {
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
