/** From whatever sound somebody gave to a voice note whose encrypted copy is kept: prepared once, whatever the network. */
import { join } from 'node:path';
import type { AudioMessage } from 'soundpost-contract/gateway';
import { GatewayError } from 'soundpost-contract/gateway-errors';
import { MediaFailure } from 'soundpost-media/failure';
import type { MediaTools } from 'soundpost-media/run';
import { prepareVoiceNote, type VoiceNote } from 'soundpost-media/voice-note';
import type { Outbound } from 'soundpost-outbound/outbound';
import { type AudioInput, type LocalAudio, materialize } from './audio-input.ts';
import { type KnownFile, KnownNotes } from './known-notes.ts';
import type { MediaStore } from './media-store.ts';

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
    const output = join(workspace, 'voice.ogg');
    const note = await prepareVoiceNote({ tools, input: path, output, workspace, keepsOpus, signal });
    if (note.passedThrough) this.#known.remember(known, note);
    return note;
  }
}
