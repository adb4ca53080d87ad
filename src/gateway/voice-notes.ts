/** Converts any audio to a voice note and stores its encrypted copy, for any network. */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { IncomingVideo } from 'soundpost-chat/transport';
import type { AudioMessage, VideoMessage } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { MediaFailure } from 'soundpost-media/failure';
import type { MediaTools } from 'soundpost-media/run';
import type { prepareVoiceNote } from 'soundpost-media/voice-note';
import { OutboundFailed, OutboundRefused } from 'soundpost-outbound/errors';
import type { Outbound } from 'soundpost-outbound/outbound';
import type { MediaStore } from './media-store.ts';

type VoiceNote = Awaited<ReturnType<typeof prepareVoiceNote>>;

interface VoiceNotesOptions {
  readonly media: MediaStore;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
}

interface NoteSource {
  readonly audio: AudioInput;
  readonly workspace: string;
  /** Whether any mono Ogg Opus is sent unchanged, even if phones may not play it; default false. */
  readonly keepsOpus?: boolean;
}

export class VoiceNotes {
  readonly #options: VoiceNotesOptions;
  readonly #known = new KnownNotes();

  constructor(options: VoiceNotesOptions) {
    this.#options = options;
  }

  /**
   * Answers the finished file, which lives as long as the workspace, and its copy's message fields.
   * Throws bad_request, audio_unreachable, not_audio.
   */
  async make(
    { audio, workspace, keepsOpus = false }: NoteSource,
    signal: AbortSignal,
  ): Promise<{ file: string; durationMs: number; audioMessage: AudioMessage }> {
    const { outbound, media } = this.#options;
    try {
      const input = await materialize(audio, outbound, workspace, signal);
      const note = await this.prepare(input, { workspace, keepsOpus }, signal);
      const sha256 = note.passedThrough ? input.sha256 : undefined;
      const durationMs = Math.round(note.durationSeconds * 1000);
      return { file: note.path, durationMs, audioMessage: await media.keep(note, sha256, workspace, signal) };
    } catch (error) {
      throw asNotAudio(error, 'audio');
    }
  }

  /**
   * Keeps a video that came in as it is: what is in it nobody looks at.
   * Throws audio_unreachable.
   */
  async keepVideo(
    { file, video, workspace }: { file: AudioInput; video: IncomingVideo; workspace: string },
    signal: AbortSignal,
  ): Promise<VideoMessage> {
    const { outbound, media } = this.#options;
    const local = await materialize(file, outbound, workspace, signal);
    return { ...(await media.seal(local, video.mimetype, workspace, signal)), ...video };
  }

  /** Keeps no copy. @throws {MediaFailure} when the file is not audio */
  async prepare(
    { path, sha256 }: LocalAudio,
    { workspace, keepsOpus = false }: Omit<NoteSource, 'audio'>,
    signal: AbortSignal,
  ): Promise<VoiceNote> {
    const { tools } = this.#options;
    const known = { keepsOpus, sha256 };
    const found = this.#known.find(known, path);
    if (found !== undefined) return found;
    const { prepareVoiceNote } = await import('soundpost-media/voice-note');
    const output = join(workspace, 'voice.ogg');
    const note = await prepareVoiceNote({ tools, input: path, output, workspace, keepsOpus, signal });
    if (note.passedThrough) this.#known.remember(known, note);
    return note;
  }
}

/** The error for the caller if a file is no sound; any other error as it is. */
export function asNotAudio(error: unknown, field: string): unknown {
  if (!(error instanceof MediaFailure)) return error;
  return new GatewayError('not_audio', `${field}: ${error.details}`, { cause: error });
}

// Caches probes of files that already are voice notes, by SHA-256. One greeting goes to many
// people, and probing it, with two processes and a decode, takes a hundred times as long as sending
// it.

type Known = Pick<VoiceNote, 'seconds' | 'durationSeconds' | 'waveform'>;

/** About 256 KB. */
const MOST = 1000;

interface KnownFile {
  /** Of the file, in hexadecimal. */
  readonly sha256: string;
  /** Whether any mono Ogg Opus was to be sent unchanged. */
  readonly keepsOpus: boolean;
}

class KnownNotes {
  /** The least recently used comes first. */
  readonly #notes = new Map<string, Known>();

  /** @param path of a file with this hash */
  find(file: KnownFile, path: string): VoiceNote | undefined {
    const name = nameOf(file);
    const known = this.#notes.get(name);
    if (known === undefined) return undefined;
    this.#notes.delete(name);
    this.#notes.set(name, known);
    return { ...known, path, passedThrough: true };
  }

  remember(file: KnownFile, { seconds, durationSeconds, waveform }: VoiceNote): void {
    const [oldest] = this.#notes.keys();
    if (this.#notes.size >= MOST && oldest !== undefined) this.#notes.delete(oldest);
    this.#notes.set(nameOf(file), { seconds, durationSeconds, waveform });
  }
}

function nameOf({ sha256, keepsOpus }: KnownFile): string {
  return keepsOpus ? `${sha256} unchanged` : sha256;
}

// Forms of the caller's audio, each turned into a local file (decisions B "Audio").

/** The largest multipart body. */
export const MAX_AUDIO_BYTES = 100 * 1024 * 1024;

export type AudioInput =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly path: string; readonly sha256?: string | undefined };

export interface LocalAudio {
  readonly path: string;
  /** Of the file, in hexadecimal. */
  readonly sha256: string;
}

const HTTP_URL = /^https?:\/\//i;
const DATA_URI = /^data:[^,]*;base64,/i;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Reads the `audio` field. Throws bad_request for anything but its three forms. */
export function parseAudio(audio: string): AudioInput {
  const url = parseUrl(audio);
  if (url !== undefined) return url;
  const bytes = parseBase64(audio);
  if (bytes !== undefined) return bytes;
  throw new GatewayError('bad_request', 'audio: must be an http(s) URL, base64 or a base64 data URI');
}

export function parseUrl(text: string): AudioInput | undefined {
  const url = text.trim();
  return HTTP_URL.test(url) ? { kind: 'url', url } : undefined;
}

export function parseBase64(text: string): AudioInput | undefined {
  const encoded = text.trim().replace(DATA_URI, '').replace(/\s+/g, '');
  return BASE64.test(encoded) ? { kind: 'bytes', bytes: Buffer.from(encoded, 'base64') } : undefined;
}

/** Writes the audio to the workspace. Throws audio_unreachable. @param field that names it */
export async function materialize(
  audio: AudioInput,
  outbound: Outbound,
  workspace: string,
  signal: AbortSignal,
  field = 'audio',
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
      const why = error instanceof OutboundRefused ? error.explained : error.message;
      throw new GatewayError('audio_unreachable', `${field}: ${why}`, { cause: error });
    }
    throw error;
  }
}

async function hashOf(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash, { signal });
  return hash.digest('hex');
}
