/** Verifies and parses the service's webhooks (Standard Webhooks 1.0.0). */
import type { WebhookEvent } from 'soundpost-contract/webhook-events';

/** The signature is wrong or too old. Answer with 400 or 401. */
export class WebhookSignatureError extends Error {
  override readonly name = 'WebhookSignatureError';
}

export interface VerifyOptions {
  /** Largest difference between the sender's clock and this one. Default 300. */
  readonly toleranceSeconds?: number;
  /** Default: now. */
  readonly nowMs?: number;
}

type IncomingHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const SECRET_PREFIX = 'whsec_';
const SCHEME = 'v1,';

/**
 * The event of a webhook. Throws WebhookSignatureError.
 * @param headers from Node, or a fetch `Headers`
 * @param body the exact bytes received, before any parsing
 * @param secret `whsec_…`; several if more than one key has a webhook here
 */
export async function verifyWebhook(
  headers: IncomingHeaders,
  body: string | Uint8Array,
  secret: string | readonly string[],
  { toleranceSeconds = 300, nowMs = Date.now() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature')
    .split(' ')
    .filter((signature) => signature.startsWith(SCHEME))
    .map((signature) => bytesOfBase64(signature.slice(SCHEME.length)));
  if (!/^\d+$/.test(timestamp) || Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds) {
    throw new WebhookSignatureError('the webhook is too old, too new, or says nothing of its time');
  }
  const content = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), content);
  if (!(await isSigned(signed, signatures, [secret].flat()))) {
    throw new WebhookSignatureError('no signature of the webhook was made with the secret');
  }
  return JSON.parse(new TextDecoder().decode(content)) as WebhookEvent;
}

/** WebCrypto compares in constant time. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: readonly (Uint8Array<ArrayBuffer> | undefined)[],
  secrets: readonly string[],
): Promise<boolean> {
  for (const secret of secrets) {
    const bytes = secret.startsWith(SECRET_PREFIX)
      ? bytesOfBase64(secret.slice(SECRET_PREFIX.length))
      : undefined;
    if (bytes === undefined || bytes.length === 0) {
      throw new TypeError('a webhook secret is of the form whsec_<base64>');
    }
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [
      'verify',
    ]);
    for (const signature of signatures) {
      if (signature !== undefined && (await crypto.subtle.verify('HMAC', key, signature, signed))) {
        return true;
      }
    }
  }
  return false;
}

function headerOf(headers: IncomingHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value !== 'string' || value === '') {
    throw new WebhookSignatureError(`the webhook has no header ${name}`);
  }
  return value;
}

/** Undefined if the text is not base64. */
function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}
