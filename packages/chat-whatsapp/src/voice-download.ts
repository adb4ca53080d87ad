/** Fetches the sound of a message that arrived. What the message says about it was written by a stranger. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { WAMessageContent } from 'baileys';
import { deadline } from 'soundpost-base/deadline';
import type { Outbound } from 'soundpost-outbound/outbound';
import { fetchOptions } from './guarded-requests.ts';
import type { BaileysLibrary } from './library.ts';

type AudioContent = NonNullable<WAMessageContent['audioMessage']>;

/** WhatsApp takes audio up to 16 MB. */
const LONGEST_BYTES = 16 * 1024 * 1024;
const MEDIA_KEY_BYTES = 32;
/** A path and nothing that could change the host before it. */
const DIRECT_PATH = /^\/[\w./?&=%+~-]+$/;
const DOWNLOAD_TIMEOUT_MS = 60_000;

/** Writes the decrypted sound to a file. Rejects when it cannot be had, is too large, or is not what the message says. */
export async function downloadVoice(
  library: BaileysLibrary,
  { directPath, mediaKey, fileSha256 }: AudioContent,
  file: string,
  outbound: Pick<Outbound, 'service'>,
): Promise<void> {
  if (!(directPath && DIRECT_PATH.test(directPath) && mediaKey?.length === MEDIA_KEY_BYTES)) {
    throw new Error('the message does not say where its sound is');
  }
  using limit = deadline(DOWNLOAD_TIMEOUT_MS);
  // Only the path is handed on: with the message's `url` Baileys would go to whatever host a stranger wrote there.
  const stream = await library.downloadContentFromMessage({ directPath, mediaKey }, 'audio', {
    options: { ...fetchOptions(await outbound.service()), signal: limit.signal },
  });
  const hash = createHash('sha256');
  let sizeBytes = 0;
  await pipeline(
    stream,
    async function* limit(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        sizeBytes += chunk.length;
        if (sizeBytes > LONGEST_BYTES) {
          throw new Error(`the sound has more than ${LONGEST_BYTES} bytes`);
        }
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(file, { mode: 0o600 }),
    { signal: limit.signal },
  );
  if (fileSha256?.length && !hash.digest().equals(Buffer.from(fileSha256))) {
    throw new Error('the sound is not the one that was sent: its hash differs');
  }
}
