/** Signing by Standard Webhooks 1.0.0. Imported in this folder alone: who signs delivers. */
import { webhookMac } from 'soundpost-kit/signing/signatures';

/**
 * Makes the three headers of the specification.
 * @param id the same for every attempt, so that a receiver can drop what it has seen
 * @param secrets the current one first; during a rotation also the previous one
 */
export function signWebhook(id: string, body: string, secrets: readonly string[], nowMs: number) {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = secrets.map(
    (secret) => `v1,${webhookMac(secret, id, timestamp, body).toString('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
}
