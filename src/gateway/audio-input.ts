/** The forms in which a caller gives the audio, each turned into a local file (decisions B "Audio"). */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../contract/gateway-errors.ts';
import { OutboundFailed, OutboundRefused } from '../outbound/errors.ts';
import type { Outbound } from '../outbound/outbound.ts';

/** As large as a multipart body may be. */
export const MAX_AUDIO_BYTES = 100 * 1024 * 1024;

export type AudioInput =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly path: string };

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

/** Puts the audio into the workspace and answers its path. Throws audio_unreachable. */
export async function materialize(
  audio: AudioInput,
  outbound: Outbound,
  workspace: string,
  signal: AbortSignal,
): Promise<string> {
  if (audio.kind === 'file') {
    return audio.path;
  }
  const path = join(workspace, 'input');
  if (audio.kind === 'bytes') {
    await writeFile(path, audio.bytes, { mode: 0o600, signal });
    return path;
  }
  try {
    await outbound.download({ url: audio.url, file: path, maxBytes: MAX_AUDIO_BYTES, signal });
    return path;
  } catch (error) {
    if (error instanceof OutboundRefused || error instanceof OutboundFailed) {
      throw new GatewayError('audio_unreachable', `audio: ${error.message}`, { cause: error });
    }
    throw error;
  }
}
