/** `extract --send` without a service: uses the configured gateway, or one over this DATA_DIR. */
import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { outputFormats } from 'soundpost-contract/formats';
import type { MessageKey, MessageStatus } from 'soundpost-contract/job';
import type { VoiceMessageRequest } from 'soundpost-contract/job-request';
import {
  type GatewaySettings,
  LARGEST_BASE64_BYTES,
  sendVoiceMessage,
} from '../followups/kinds/gateway-client.ts';
import type { Config } from '../process/config.ts';
import { deriveSecrets, readSecretKey, secretKeyPath } from '../process/secrets.ts';
import { UsageError } from './ending.ts';

interface SentMessage {
  readonly status: 'sent';
  readonly key: MessageKey;
  readonly messageStatus: MessageStatus;
}

const TRIES = 4;
const PAUSE_SECONDS = 3;
const LONGEST_PAUSE_SECONDS = 30;

/** Checks before any work. Throws a UsageError that names what to set. */
export async function gatewayOf(config: Config): Promise<GatewaySettings> {
  const apiKey = config.GATEWAY_API_KEY ?? (await derivedKey(config));
  if (apiKey === undefined) {
    throw new UsageError(
      '--send needs a gateway: start "soundpost serve" with the same DATA_DIR, or set GATEWAY_URL and GATEWAY_API_KEY, or use --server',
    );
  }
  return {
    url: config.GATEWAY_URL ?? `http://127.0.0.1:${config.GATEWAY_PORT}`,
    kind: config.GATEWAY_KIND,
    brand: config.GATEWAY_BRAND,
    apiKey,
  };
}

/** Of a gateway with the same root secret; creates none. */
async function derivedKey(config: Config): Promise<string | undefined> {
  const root = config.SECRET_KEY ?? (await readSecretKey(secretKeyPath(config)).catch(() => undefined));
  return root === undefined ? undefined : deriveSecrets(root).gatewayApiKey;
}

/**
 * @param path of a voice note
 * @throws if the message was not sent, or if that is unknown
 */
export async function sendToGateway(
  gateway: GatewaySettings,
  request: VoiceMessageRequest,
  path: string,
  signal: AbortSignal,
): Promise<SentMessage> {
  const { size: sizeBytes } = await stat(path);
  if (gateway.kind !== 'soundpost' && sizeBytes > LARGEST_BASE64_BYTES) {
    throw new Error(
      `the voice message has ${sizeBytes} bytes, too many to send without a service: use --server`,
    );
  }
  // The gateway's own record of this key makes a repetition safe.
  const idempotencyKey = randomUUID();
  for (let tried = 1; ; tried += 1) {
    const answer = await sendVoiceMessage(
      gateway,
      request,
      { path, sizeBytes, isNote: true, mediaType: outputFormats.voice.mediaType, url: '' },
      idempotencyKey,
    );
    switch (answer.kind) {
      case 'sent':
        return { status: 'sent', key: answer.key, messageStatus: answer.messageStatus };
      case 'refused':
        throw new Error(`the voice message was not sent: ${answer.message} (${answer.code})`);
      case 'lost':
        throw new Error(`the voice message may or may not have been sent: ${answer.message}`);
      case 'not-now': {
        const seconds = answer.retryAfterSeconds ?? PAUSE_SECONDS;
        if (tried === TRIES || seconds > LONGEST_PAUSE_SECONDS) {
          throw new Error(
            `the voice message was not sent: ${answer.message} at ${gateway.url}; check GATEWAY_URL and GATEWAY_PORT`,
          );
        }
        await delay(seconds * 1000, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    }
  }
}
