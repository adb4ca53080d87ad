/** Stores encrypted copies of messages' media, addresses them, and removes them on expiry. */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { untilAborted } from 'soundpost-base/deadline';
import type { Logger } from 'soundpost-base/logger';
import { gatewayKey } from 'soundpost-chat/redis-keys';
import { fetchedAs } from 'soundpost-chat/transport';
import type { AudioMessage, VideoMessage } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ObjectNotFound, type Storage } from 'soundpost-kit/storage/storage';
import type { prepareVoiceNote } from 'soundpost-media/voice-note';

interface MediaStoreOptions {
  readonly redis: Redis;
  readonly storage: Storage;
  /** Absolute base of media URLs without trailing slash. */
  readonly publicUrl: string;
  readonly keepSeconds: number;
  readonly logger: Logger;
}

/** Media ids by expiry, ms. */
const EXPIRY = gatewayKey('media-expiry');
const SWEEP_BATCH = 100;

/** 128 random bits: the address is no secret, but must not be guessable. */
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
   * Encrypts and stores a finished voice note, and answers a message's fields for it.
   * @param sha256 of its file in hexadecimal, if known
   */
  async keep(
    note: Awaited<ReturnType<typeof prepareVoiceNote>>,
    sha256: string | undefined,
    workspace: string,
    signal: AbortSignal,
  ): Promise<AudioMessage> {
    const kept = await this.seal({ path: note.path, sha256 }, NOTE_TYPE, workspace, signal);
    const waveform = Buffer.from(note.waveform).toString('base64');
    return { ...kept, seconds: note.seconds, ptt: true, waveform };
  }

  /**
   * Encrypts and stores a file of any kind.
   * @param sha256 of the file in hexadecimal, if known
   */
  async seal(
    { path, sha256 }: { path: string; sha256: string | undefined },
    mimetype: string,
    workspace: string,
    signal: AbortSignal,
  ): Promise<Omit<VideoMessage, 'caption'>> {
    const { redis, storage, publicUrl, keepSeconds } = this.#options;
    const id = randomBytes(16).toString('hex');
    const encrypted = join(workspace, `${id}.enc`);
    const media = await encryptMedia(path, encrypted, signal, { sha256, mimetype });
    // Recorded before it is stored: a crash leaves an id to sweep, never an unknown file.
    await redis.zadd(EXPIRY, redisNow() + keepSeconds * 1000, id);
    await stored(untilAborted(storage.publish(encrypted, storageKey(id)), signal), signal);
    const url = new URL(`${publicUrl}/${storageKey(id)}`);
    return {
      url: url.href,
      mimetype,
      fileSha256: media.fileSha256.toString('base64'),
      fileLength: String(media.sizeBytes),
      mediaKey: media.mediaKey.toString('base64'),
      fileEncSha256: media.fileEncSha256.toString('base64'),
      directPath: url.pathname,
      mediaKeyTimestamp: String(Math.floor(Date.now() / 1000)),
    };
  }

  /**
   * The plain file of a message; undefined if it is larger than `maxBytes`, or no longer kept.
   * @throws StorageUnavailable; other errors if the stored copy is damaged or cannot be read
   */
  async plain(
    { directPath, mediaKey, fileLength, fileSha256, mimetype }: AudioMessage | VideoMessage,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<Buffer | undefined> {
    const id = /([0-9a-f]+)\.enc$/.exec(directPath)?.[1] ?? '';
    if (!MEDIA_ID.test(id) || Number(fileLength) > maxBytes) return undefined;
    try {
      const sealed = await buffer(addAbortSignal(signal, await this.#options.storage.read(storageKey(id))));
      const { iv, cipherKey } = expand(Buffer.from(mediaKey, 'base64'), mimetype);
      const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv);
      const plain = Buffer.concat([decipher.update(sealed.subarray(0, -MAC_BYTES)), decipher.final()]);
      const hash = createHash('sha256').update(plain).digest('base64');
      if (hash !== fileSha256) throw new Error('the stored copy of a message has changed');
      return plain;
    } catch (error) {
      if (error instanceof ObjectNotFound) return undefined;
      throw error;
    }
  }

  /** Removes expired media. */
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

/** Error for callers when the storage fails. */
export function storageFailure(error: unknown): GatewayError {
  return new GatewayError('service_unavailable', 'the gateway cannot reach its storage', {
    retryAfterSeconds: 5,
    cause: error,
  });
}

// Encryption of stored media (decisions B "Media"): HKDF-SHA256 with a zero salt and the info
// `WhatsApp Audio Keys` (of videos `WhatsApp Video Keys`) expands a 32-byte media key to 112 bytes:
// iv 16, cipher key 32, MAC key 32,
// reference key 32 (unused). The file is AES-256-CBC/PKCS#7 and the first 10 bytes of
// HMAC-SHA256(MAC key, iv ‖ ciphertext).

interface EncryptedMedia {
  readonly mediaKey: Buffer;
  /** SHA-256 of the plain file. */
  readonly fileSha256: Buffer;
  /** SHA-256 of the encrypted file, MAC included. */
  readonly fileEncSha256: Buffer;
  /** Size of the plain file. */
  readonly sizeBytes: number;
}

const NOTE_TYPE = 'audio/ogg; codecs=opus';
const keyInfo = (mimetype: string): string =>
  fetchedAs(mimetype) === 'video' ? 'WhatsApp Video Keys' : 'WhatsApp Audio Keys';
const MAC_BYTES = 10;

/** Larger than the streams' 64 KiB, each of which costs an event-loop turn. */
const CHUNK_BYTES = 512 * 1024;

/**
 * Encrypts from file to file with a new key, in constant memory.
 * @param sha256 of the plain file in hexadecimal, if known; saves computing it
 * @param mimetype decides whose keys the file gets; default: those of audio
 */
export async function encryptMedia(
  input: string,
  output: string,
  signal: AbortSignal,
  { sha256, mimetype = NOTE_TYPE }: { sha256?: string | undefined; mimetype?: string } = {},
): Promise<EncryptedMedia> {
  const mediaKey = randomBytes(32);
  const { iv, cipherKey, macKey } = expand(mediaKey, mimetype);
  const cipher = createCipheriv('aes-256-cbc', cipherKey, iv);
  const mac = createHmac('sha256', macKey).update(iv);
  const plainHash = createHash('sha256');
  const encryptedHash = createHash('sha256');
  let sizeBytes = 0;

  const sealed = (chunk: Buffer): Buffer => {
    mac.update(chunk);
    encryptedHash.update(chunk);
    return chunk;
  };
  await pipeline(
    createReadStream(input, { highWaterMark: CHUNK_BYTES }),
    async function* encrypt(plain: AsyncIterable<Buffer>) {
      for await (const chunk of plain) {
        if (sha256 === undefined) plainHash.update(chunk);
        sizeBytes += chunk.length;
        yield sealed(cipher.update(chunk));
      }
      yield sealed(cipher.final());
      const tag = mac.digest().subarray(0, MAC_BYTES);
      encryptedHash.update(tag);
      yield tag;
    },
    createWriteStream(output, { mode: 0o600, highWaterMark: CHUNK_BYTES }),
    { signal },
  );
  const fileSha256 = sha256 === undefined ? plainHash.digest() : Buffer.from(sha256, 'hex');
  return { mediaKey, fileSha256, fileEncSha256: encryptedHash.digest(), sizeBytes };
}

function expand(mediaKey: Buffer, mimetype: string): { iv: Buffer; cipherKey: Buffer; macKey: Buffer } {
  // Zero salt: RFC 5869, 2.2 replaces an empty one with zeros.
  const expanded = Buffer.from(hkdfSync('sha256', mediaKey, '', keyInfo(mimetype), 112));
  return {
    iv: expanded.subarray(0, 16),
    cipherKey: expanded.subarray(16, 48),
    macKey: expanded.subarray(48, 80),
  };
}
