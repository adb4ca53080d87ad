/**
 * Opens an encrypted voice note in the browser: HKDF-SHA256 over the media key gives the keys, the last ten bytes of
 * the file are a MAC over iv and ciphertext, the rest is AES-256-CBC. Nothing is played that does not verify.
 */
import type { AudioMessage } from 'soundpost-contract/gateway';

const KEY_INFO = new TextEncoder().encode('WhatsApp Audio Keys');
const MAC_BYTES = 10;

type Bytes = Uint8Array<ArrayBuffer>;

export function fromBase64(base64: string): Bytes {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** @returns the Ogg Opus file. @throws with a message that ends the sentence `Cannot play: …` */
export async function openVoiceNote(audioMessage: AudioMessage): Promise<Blob> {
  // Without https a page has no such thing, whatever the types say.
  if (!('subtle' in crypto)) {
    throw new Error('this browser only decrypts on https or localhost');
  }
  // By its name below this page: the host of `url` may be one that only other machines use.
  const name = audioMessage.directPath.split('/').pop();
  const response = await fetch(`media/${name}`);
  if (!response.ok) {
    throw new Error(
      response.status === 404 ? 'this recording has expired' : 'the recording could not be loaded',
    );
  }
  const file = new Uint8Array(await response.arrayBuffer());
  await verifyHash(file, audioMessage.fileEncSha256);
  const { iv, cipherKey, macKey } = await expand(fromBase64(audioMessage.mediaKey));
  const ciphertext = file.subarray(0, -MAC_BYTES);
  await verifyMac(macKey, { iv, ciphertext, expected: file.subarray(-MAC_BYTES) });
  const plain = await crypto.subtle.decrypt({ name: 'AES-CBC', iv }, cipherKey, ciphertext);
  await verifyHash(new Uint8Array(plain), audioMessage.fileSha256);
  // Safari plays Ogg Opus from 18.4 on.
  return new Blob([plain], { type: audioMessage.mimetype });
}

async function expand(mediaKey: Bytes): Promise<{ iv: Bytes; cipherKey: CryptoKey; macKey: CryptoKey }> {
  const secret = await crypto.subtle.importKey('raw', mediaKey, 'HKDF', false, ['deriveBits']);
  const bits = await crypto.subtle.deriveBits(
    { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(32), info: KEY_INFO },
    secret,
    112 * 8,
  );
  const keys = new Uint8Array(bits);
  return {
    iv: keys.slice(0, 16),
    cipherKey: await crypto.subtle.importKey('raw', keys.slice(16, 48), 'AES-CBC', false, ['decrypt']),
    macKey: await crypto.subtle.importKey(
      'raw',
      keys.slice(48, 80),
      { name: 'HMAC', hash: 'SHA-256' },
      false,
      ['sign'],
    ),
  };
}

async function verifyMac(
  macKey: CryptoKey,
  { iv, ciphertext, expected }: { iv: Bytes; ciphertext: Bytes; expected: Bytes },
): Promise<void> {
  const signed = new Uint8Array(iv.length + ciphertext.length);
  signed.set(iv);
  signed.set(ciphertext, iv.length);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', macKey, signed));
  if (!expected.every((byte, index) => byte === mac[index])) {
    throw new Error('the recording has been tampered with');
  }
}

async function verifyHash(bytes: Bytes, base64: string): Promise<void> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  const expected = fromBase64(base64);
  if (!digest.every((byte, index) => byte === expected[index])) {
    throw new Error('the recording is damaged');
  }
}
