/** The forms in which a caller gives the audio, each turned into a local file (decisions B "Audio"). */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';

/** As large as a multipart body may be. */
export const MAX_AUDIO_BYTES = 100 * 1024 * 1024;

export type AudioInput =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly path: string; readonly sha256?: string | undefined };

export interface LocalAudio {
  readonly path: string;
  /** Of the file, in hexadecimal digits. */
  readonly sha256: string;
}

const HTTP_URL = /^https?:\/\//i;
const DATA_URI = /^data:[^,]*;base64,/i;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Reads the `audio` field. Throws bad_request when it has none of the three forms. */
export function parseAudio(audio: string): AudioInput {
  const text = audio.trim();
  if (HTTP_URL.test(text)) {
    return { kind: 'url', url: text };
  }
  const encoded = text.replace(DATA_URI, '').replace(/\s+/g, '');
  if (!BASE64.test(encoded)) {
    throw new GatewayError('bad_request', 'audio: must be an http(s) URL, base64 or a base64 data URI');
  }
  return { kind: 'bytes', bytes: Buffer.from(encoded, 'base64') };
}

/** Puts the audio into the workspace. Throws audio_unreachable. */
export async function materialize(
  audio: AudioInput,
  outbound: Outbound,
  workspace: string,
  signal: AbortSignal,
): Promise<LocalAudio> {
  if (audio.kind === 'file') {
    return { path: audio.path, sha256: audio.sha256 ?? (await hashOf(audio.path, signal)) };
  }
  const path = join(workspace, 'input');
  if (audio.kind === 'bytes') {
    await writeFile(path, audio.bytes, { mode: 0o600, signal });
    return { path, sha256: createHash('sha256').update(audio.bytes).digest('hex') };
  }
  try {
    await outbound.download({ url: audio.url, file: path, maxBytes: MAX_AUDIO_BYTES, signal });
    return { path, sha256: await hashOf(path, signal) };
  } catch (error) {
    if (error instanceof OutboundRefused || error instanceof OutboundFailed) {
      throw new GatewayError('audio_unreachable', `audio: ${error.message}`, { cause: error });
    }
    throw error;
  }
}

async function hashOf(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash, { signal });
  return hash.digest('hex');
}
