/** From whatever sound somebody gave to a voice note whose encrypted copy is kept: prepared once, whatever the network. */
import { join } from 'node:path';
import type { AudioMessage } from '../contract/gateway.ts';
import { GatewayError } from '../contract/gateway-errors.ts';
import { MediaFailure } from '../media/failure.ts';
import type { MediaTools } from '../media/run.ts';
import { prepareVoiceNote } from '../media/voice-note.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { type AudioInput, materialize } from './audio-input.ts';
import type { MediaStore } from './media-store.ts';

export interface VoiceNotesOptions {
  readonly media: MediaStore;
  readonly outbound: Outbound;
  readonly tools: MediaTools;
}

export class VoiceNotes {
  readonly #options: VoiceNotesOptions;

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
    const { outbound, tools, media } = this.#options;
    try {
      const input = await materialize(audio, outbound, workspace, signal);
      const output = join(workspace, 'voice.ogg');
      const note = await prepareVoiceNote({ tools, input, output, workspace, signal });
      return { file: note.path, audioMessage: await media.keep(note, workspace, signal) };
    } catch (error) {
      if (error instanceof MediaFailure) {
        throw new GatewayError('not_audio', `audio: ${error.details}`, { cause: error });
      }
      throw error;
    }
  }
}
