/**
 * What was found out of files that are voice notes already, by their SHA-256. The same greeting goes to many people, and looking into it, with two
 * processes and a decode, takes a hundred times as long as sending it.
 */
import type { VoiceNote } from '../media/voice-note.ts';

type Known = Pick<VoiceNote, 'seconds' | 'durationSeconds' | 'waveform'>;

/** A quarter of a megabyte of them. */
const MOST = 1000;

export class KnownNotes {
  /** The one that was not asked for for the longest time comes first. */
  readonly #notes = new Map<string, Known>();

  /** @param path of a file with this hash */
  find(sha256: string, path: string): VoiceNote | undefined {
    const known = this.#notes.get(sha256);
    if (known === undefined) return undefined;
    this.#notes.delete(sha256);
    this.#notes.set(sha256, known);
    return { ...known, path, passedThrough: true };
  }

  remember(sha256: string, { seconds, durationSeconds, waveform }: VoiceNote): void {
    const [oldest] = this.#notes.keys();
    if (this.#notes.size >= MOST && oldest !== undefined) this.#notes.delete(oldest);
    this.#notes.set(sha256, { seconds, durationSeconds, waveform });
  }
}
