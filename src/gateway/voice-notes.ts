/** From whatever sound somebody gave to a voice note whose encrypted copy is kept: prepared once, whatever the network. */
import { join } from 'node:path';
import type { AudioMessage } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { MediaFailure } from 'soundpost-media/failure';
import type { MediaTools } from 'soundpost-media/run';
import type { prepareVoiceNote } from 'soundpost-media/voice-note';
import type { Outbound } from 'soundpost-outbound/outbound';
import { type AudioInput, type LocalAudio, materialize } from './audio-input.ts';
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
  /** Whether any mono Ogg Opus is sent as it is; default not. */
  readonly keepsOpus?: boolean;
}

export class VoiceNotes {
  readonly #options: VoiceNotesOptions;
  readonly #known = new KnownNotes();

  constructor(options: VoiceNotesOptions) {
    this.#options = options;
  }

  /**
   * Answers the finished file, which lives as long as the workspace, and what a message says of its kept copy.
   * Throws bad_request, audio_unreachable, not_audio.
   */
  async make(
    { audio, workspace, keepsOpus = false }: NoteSource,
    signal: AbortSignal,
  ): Promise<{ file: string; durationMs: number; audioMessage: AudioMessage }> {
    const { outbound, media } = this.#options;
    try {
      const input = await materialize(audio, outbound, workspace, signal);
      const kept = { keepsOpus, sha256: input.sha256 };
      const note =
        this.#known.find(kept, input.path) ?? (await this.#prepare(input, kept, workspace, signal));
      const sha256 = note.passedThrough ? input.sha256 : undefined;
      const durationMs = Math.round(note.durationSeconds * 1000);
      return { file: note.path, durationMs, audioMessage: await media.keep(note, sha256, workspace, signal) };
    } catch (error) {
      if (error instanceof MediaFailure) {
        throw new GatewayError('not_audio', `audio: ${error.details}`, { cause: error });
      }
      throw error;
    }
  }

  async #prepare(
    { path }: LocalAudio,
    known: KnownFile,
    workspace: string,
    signal: AbortSignal,
  ): Promise<VoiceNote> {
    const { tools } = this.#options;
    const { keepsOpus } = known;
    const { prepareVoiceNote } = await import('soundpost-media/voice-note');
    const output = join(workspace, 'voice.ogg');
    const note = await prepareVoiceNote({ tools, input: path, output, workspace, keepsOpus, signal });
    if (note.passedThrough) this.#known.remember(known, note);
    return note;
  }
}

// What was found out of files that are voice notes already, by their SHA-256. The same greeting
// goes to many people, and looking into it, with two processes and a decode, takes a hundred times
// as long as sending it.

type Known = Pick<VoiceNote, 'seconds' | 'durationSeconds' | 'waveform'>;

/** A quarter of a megabyte of them. */
const MOST = 1000;

interface KnownFile {
  /** Of the file, in hexadecimal digits. */
  readonly sha256: string;
  /** Whether it was to be taken as it is. */
  readonly keepsOpus: boolean;
}

class KnownNotes {
  /** The one that was not asked for for the longest time comes first. */
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
  return keepsOpus ? `${sha256} as it is` : sha256;
}
