/** Where the encrypted copy of a voice note is kept, how it is addressed, and when it goes. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { untilAborted } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import type { AudioMessage } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import type { Storage } from 'soundpost-kit/storage/storage';
import type { prepareVoiceNote } from 'soundpost-media/voice-note';
import { encryptMedia } from './media-encryption.ts';

interface MediaStoreOptions {
  readonly redis: Redis;
  readonly storage: Storage;
  /** Absolute base of media URLs, without a slash at the end. */
  readonly publicUrl: string;
  readonly keepSeconds: number;
  readonly logger: Logger;
}

/** Media ids by the time at which they go, ms. */
const EXPIRY = gatewayKey('media-expiry');
const SWEEP_BATCH = 100;

/** 128 random bits: the address of a file is no secret, but nobody shall walk through them. */
export const MEDIA_ID = /^[0-9a-f]{32}$/;

export function storageKey(mediaId: string): string {
  return `media/${mediaId}.enc`;
}

export class MediaStore {
  readonly #options: MediaStoreOptions;

  constructor(options: MediaStoreOptions) {
    this.#options = options;
  }

  /**
   * Encrypts a finished voice note, stores it and answers what a message says of it.
   * @param sha256 of its file in hexadecimal digits, where it is known
   */
  async keep(
    note: Awaited<ReturnType<typeof prepareVoiceNote>>,
    sha256: string | undefined,
    workspace: string,
    signal: AbortSignal,
  ): Promise<AudioMessage> {
    const { redis, storage, publicUrl, keepSeconds } = this.#options;
    const id = randomBytes(16).toString('hex');
    const encrypted = join(workspace, `${id}.enc`);
    const media = await encryptMedia(note.path, encrypted, signal, sha256);
    // Noted before it is stored: a process that dies in between leaves an id to sweep, never a file that stays.
    await redis.zadd(EXPIRY, redisNow() + keepSeconds * 1000, id);
    await stored(untilAborted(storage.publish(encrypted, storageKey(id)), signal), signal);
    const url = new URL(`${publicUrl}/${storageKey(id)}`);
    return {
      url: url.href,
      mimetype: 'audio/ogg; codecs=opus',
      fileSha256: media.fileSha256.toString('base64'),
      fileLength: String(media.sizeBytes),
      seconds: note.seconds,
      ptt: true,
      mediaKey: media.mediaKey.toString('base64'),
      fileEncSha256: media.fileEncSha256.toString('base64'),
      directPath: url.pathname,
      mediaKeyTimestamp: String(Math.floor(Date.now() / 1000)),
      waveform: Buffer.from(note.waveform).toString('base64'),
    };
  }

  /** Removes what has been kept long enough. */
  async sweep(): Promise<void> {
    const { redis, storage, logger } = this.#options;
    for (;;) {
      const ids = await redis.zrangebyscore(EXPIRY, '-inf', redisNow(), 'LIMIT', 0, SWEEP_BATCH);
      for (const id of ids) {
        await storage.remove(storageKey(id));
        await redis.zrem(EXPIRY, id);
      }
      if (ids.length > 0) {
        logger.debug({ removed: ids.length }, 'expired media removed');
      }
      if (ids.length < SWEEP_BATCH) {
        return;
      }
    }
  }
}

async function stored(publishing: Promise<unknown>, signal: AbortSignal): Promise<void> {
  try {
    await publishing;
  } catch (error) {
    signal.throwIfAborted();
    throw storageFailure(error);
  }
}

/** What callers see when the storage does not do its work. */
export function storageFailure(error: unknown): GatewayError {
  return new GatewayError('service_unavailable', 'the gateway cannot reach its storage', {
    retryAfterSeconds: 5,
    cause: error,
  });
}
