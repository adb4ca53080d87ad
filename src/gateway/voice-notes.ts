/** From whatever sound somebody gave to a voice note whose encrypted copy is kept: prepared once, whatever the network. */
import { join } from 'node:path';
import type { AudioMessage } from '../contract/gateway.ts';
import { GatewayError } from '../contract/gateway-errors.ts';
import { MediaFailure } from '../media/failure.ts';
import type { MediaTools } from '../media/run.ts';
import { prepareVoiceNote, type VoiceNote } from '../media/voice-note.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { type AudioInput, type LocalAudio, materialize } from './audio-input.ts';
import { KnownNotes } from './known-notes.ts';
import type { MediaStore } from './media-store.ts';

interface VoiceNotesOptions {
  readonly media: MediaStore;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
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
    audio: AudioInput,
    workspace: string,
    signal: AbortSignal,
  ): Promise<{ file: string; audioMessage: AudioMessage }> {
    const { outbound, media } = this.#options;
    try {
      const input = await materialize(audio, outbound, workspace, signal);
      const note =
        this.#known.find(input.sha256, input.path) ?? (await this.#prepare(input, workspace, signal));
      const sha256 = note.passedThrough ? input.sha256 : undefined;
      return { file: note.path, audioMessage: await media.keep(note, sha256, workspace, signal) };
    } catch (error) {
      if (error instanceof MediaFailure) {
        throw new GatewayError('not_audio', `audio: ${error.details}`, { cause: error });
      }
      throw error;
    }
  }

  async #prepare({ path, sha256 }: LocalAudio, workspace: string, signal: AbortSignal): Promise<VoiceNote> {
    const { tools } = this.#options;
    const output = join(workspace, 'voice.ogg');
    const note = await prepareVoiceNote({ tools, input: path, output, workspace, signal });
    if (note.passedThrough) this.#known.remember(sha256, note);
    return note;
  }
}
