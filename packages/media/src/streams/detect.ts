/** Recognises a stream's description by its first bytes: many servers call it text/plain. */
import { open } from 'node:fs/promises';

export type StreamKind = 'hls' | 'dash';

const HEAD_BYTES = 4096;

/** @param head the first 4 KiB, or the whole of a shorter file */
function streamKind(head: Uint8Array): StreamKind | undefined {
  // A byte order mark counts as whitespace.
  const text = Buffer.from(head).toString('utf8').trimStart();
  if (text.startsWith('#EXTM3U')) return 'hls';
  const [root] = text.replaceAll(/<!--.*?-->/gs, '').match(/<(?![?!])[^\s/>]*/) ?? [];
  return text.startsWith('<') && /^<(\w+:)?MPD$/.test(root ?? '') ? 'dash' : undefined;
}

/** @param path of a regular local file */
export async function streamKindOf(path: string): Promise<StreamKind | undefined> {
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
  return streamKind(buffer.subarray(0, bytesRead));
}
