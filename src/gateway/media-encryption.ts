/**
 * The encryption of stored media (decisions B "Media"): HKDF-SHA256 with a zero salt and the info
 * `WhatsApp Audio Keys` expands a 32-byte media key to 112 bytes: iv 16, cipher key 32, MAC key 32, reference key
 * 32 (not used). The file is AES-256-CBC/PKCS#7 followed by the first 10 bytes of HMAC-SHA256(MAC key, iv ‖ ciphertext).
 */
import { createCipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

interface EncryptedMedia {
  readonly mediaKey: Buffer;
  /** SHA-256 of the plain file. */
  readonly fileSha256: Buffer;
  /** SHA-256 of the encrypted file, MAC included. */
  readonly fileEncSha256: Buffer;
  /** Size of the plain file. */
  readonly sizeBytes: number;
}

const KEY_INFO = 'WhatsApp Audio Keys';
const MAC_BYTES = 10;

/** Larger than the streams' own 64 KiB, each of which is a turn of the loop. */
const CHUNK_BYTES = 512 * 1024;

/**
 * Encrypts from file to file under a fresh key; memory stays flat whatever the size.
 * @param sha256 of the plain file in hexadecimal digits, where it is known: then it is not computed again
 */
export async function encryptMedia(
  input: string,
  output: string,
  signal: AbortSignal,
  sha256?: string,
): Promise<EncryptedMedia> {
  const mediaKey = randomBytes(32);
  // Zero salt: RFC 5869, 2.2 takes an empty one for a hash's length of zeros.
  const expanded = Buffer.from(hkdfSync('sha256', mediaKey, '', KEY_INFO, 112));
  const iv = expanded.subarray(0, 16);
  const cipher = createCipheriv('aes-256-cbc', expanded.subarray(16, 48), iv);
  const mac = createHmac('sha256', expanded.subarray(48, 80)).update(iv);
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
