/**
 * The encryption of media against another implementation: Baileys, the client from whose network the scheme comes. What we
 * encrypt it opens, and what it encrypts we open, byte for byte; the page that decrypts in the browser is held to both.
 */
import { createCipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { downloadEncryptedContent, encryptedStream, getMediaKeys } from 'baileys';
import type { AudioMessage } from 'soundpost-contract/gateway';
import { createFileStorage } from 'soundpost-kit/storage/file-storage';
import { startTestRedis, type TestRedis } from 'soundpost-testing/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encryptMedia, MediaStore, storageKey } from '../../src/gateway/media-store.ts';
import { decrypted } from './decrypted.ts';
import { ada, makeFolder, makeTone, startTestGateway, type TestGateway } from './gateway-fixture.ts';

let redis: TestRedis;
let folder: Awaited<ReturnType<typeof makeFolder>>;
let gateway: TestGateway;

beforeAll(async () => {
  redis = await startTestRedis();
  folder = await makeFolder();
  gateway = await startTestGateway({ redisUrl: redis.url, dataDir: folder.path });
});

afterAll(async () => {
  server.close();
  await gateway.close();
  await redis.close();
  await folder.remove();
});

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('base64');

/** What the server for a test's own files gives at the moment. */
let served = Buffer.alloc(0);
const server = createServer((_request, response) => response.end(served));

async function serve(file: Buffer): Promise<string> {
  served = Buffer.from(file);
  if (!server.listening) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`;
}

async function openedByBaileys(url: string, mediaKey: Buffer): Promise<Buffer> {
  return buffer(await downloadEncryptedContent(url, await getMediaKeys(mediaKey, 'ptt')));
}

/** Sizes around the blocks of the cipher, and one of many chunks. */
const sizes = [1, 15, 16, 17, 31, 32, 4096, 65_535, 65_536, 300_001];

describe('what we encrypt', () => {
  it.for(sizes)('%i bytes are opened by Baileys', async (size) => {
    const plain = randomBytes(size);
    const [input, output] = [join(folder.path, 'plain'), join(folder.path, 'encrypted')];
    await writeFile(input, plain);
    const media = await encryptMedia(input, output, AbortSignal.timeout(10_000));
    const file = await readFile(output);
    const opened = await openedByBaileys(await serve(file), media.mediaKey);
    expect(opened.equals(plain)).toBe(true);
    expect(media.fileSha256.toString('base64')).toBe(sha256(plain));
    expect(media.fileEncSha256.toString('base64')).toBe(sha256(file));
    expect(file.length).toBe((Math.floor(size / 16) + 1) * 16 + 10);
  });

  it('of a sent message is opened with nothing but what the answer says', async () => {
    const tone = join(folder.path, 'tone.ogg');
    await makeTone(tone, 1);
    const audio = (await readFile(tone)).toString('base64');
    const { body } = await gateway.call('POST', '/message/sendMessengerAudio/main', {
      number: ada.number,
      audio,
    });
    const { audioMessage } = body.message;
    const opened = await openedByBaileys(audioMessage.url, Buffer.from(audioMessage.mediaKey, 'base64'));
    expect(sha256(opened)).toBe(audioMessage.fileSha256);
    expect(String(opened.length)).toBe(audioMessage.fileLength);
    expect(opened.subarray(0, 4).toString()).toBe('OggS');
  });
});

describe('for an event with its media', () => {
  it('a file is read back, up to the size that is wanted, as long as it is kept', async () => {
    const storage = createFileStorage({ root: join(folder.path, 'own') });
    const media = new MediaStore({ storage } as unknown as ConstructorParameters<typeof MediaStore>[0]);
    const { signal } = new AbortController();
    const plain = randomBytes(70_000);
    const [input, output] = [join(folder.path, 'plain'), join(folder.path, 'encrypted')];
    await writeFile(input, plain);
    const { mediaKey, fileSha256 } = await encryptMedia(input, output, AbortSignal.timeout(10_000));
    const id = 'a'.repeat(32);
    await storage.publish(output, storageKey(id));
    const message = {
      directPath: `/below/media/${id}.enc`,
      mediaKey: mediaKey.toString('base64'),
      fileSha256: fileSha256.toString('base64'),
      fileLength: String(plain.length),
    } as AudioMessage;
    expect((await media.plain(message, plain.length, signal))?.equals(plain)).toBe(true);
    expect(await media.plain(message, plain.length - 1, signal)).toBeUndefined();
    await expect(media.plain({ ...message, fileSha256: 'x' }, plain.length, signal)).rejects.toThrow(
      'changed',
    );
    await storage.remove(storageKey(id));
    expect(await media.plain(message, plain.length, signal)).toBeUndefined();
  });
});

describe('what Baileys encrypts', () => {
  it.for(sizes)('%i bytes are opened by what we know of the scheme', async (size) => {
    const plain = randomBytes(size);
    const media = await encryptedStream(plain, 'ptt', { opts: {} });
    const file = await readFile(media.encFilePath);
    await rm(media.encFilePath);
    const opened = decrypted(file, Buffer.from(media.mediaKey).toString('base64'));
    expect(opened.plain.equals(plain)).toBe(true);
    expect(opened.macMatches).toBe(true);
    expect(opened.fileEncSha256).toBe(Buffer.from(media.fileEncSha256).toString('base64'));
  });

  it('with, our keys, iv and MAC are what its own derivation of them gives', async () => {
    const plain = randomBytes(1000);
    const input = join(folder.path, 'plain');
    await writeFile(input, plain);
    const output = join(folder.path, 'same');
    const media = await encryptMedia(input, output, AbortSignal.timeout(10_000));
    const { iv, cipherKey, macKey } = await getMediaKeys(media.mediaKey, 'ptt');
    const cipher = createCipheriv('aes-256-cbc', cipherKey, iv);
    const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
    const mac = createHmac('sha256', macKey ?? '')
      .update(iv)
      .update(ciphertext)
      .digest()
      .subarray(0, 10);
    expect((await readFile(output)).equals(Buffer.concat([ciphertext, mac]))).toBe(true);
  });
});
