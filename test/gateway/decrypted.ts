/**
 * Decrypts a stored voice note, written from decisions B "Media" and RFC 5869 alone: it shares no code with the gateway,
 * not even Node's own HKDF.
 */
import { createDecipheriv, createHash, createHmac } from 'node:crypto';

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('base64');
const hmac = (key: Buffer, ...parts: Buffer[]): Buffer => {
  const mac = createHmac('sha256', key);
  for (const part of parts) mac.update(part);
  return mac.digest();
};

/** RFC 5869, 2.2 and 2.3. */
function hkdf(secret: Buffer, info: string, length: number): Buffer {
  const pseudorandomKey = hmac(Buffer.alloc(32), secret);
  let block: Buffer = Buffer.alloc(0);
  let output: Buffer = Buffer.alloc(0);
  for (let counter = 1; output.length < length; counter++) {
    block = hmac(pseudorandomKey, block, Buffer.from(info), Buffer.from([counter]));
    output = Buffer.concat([output, block]);
  }
  return output.subarray(0, length);
}

export interface Opened {
  readonly plain: Buffer;
  readonly macMatches: boolean;
  readonly fileSha256: string;
  readonly fileEncSha256: string;
}

/** @param kind whose keys it was encrypted with */
export function decrypted(file: Buffer, mediaKey: string, kind: 'Audio' | 'Video' = 'Audio'): Opened {
  const keys = hkdf(Buffer.from(mediaKey, 'base64'), `WhatsApp ${kind} Keys`, 112);
  const [iv, cipherKey, macKey] = [keys.subarray(0, 16), keys.subarray(16, 48), keys.subarray(48, 80)];
  const ciphertext = file.subarray(0, -10);
  const mac = file.subarray(-10);
  const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv);
  const plain = Buffer.concat([decipher.update(ciphertext), decipher.final()]);
  return {
    plain,
    macMatches: hmac(macKey, iv, ciphertext).subarray(0, 10).equals(mac),
    fileSha256: sha256(plain),
    fileEncSha256: sha256(file),
  };
}
