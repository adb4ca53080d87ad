/**
 * What was found out of files that are voice notes already, by their SHA-256. The same greeting goes to many people, and looking into it, with two
 * processes and a decode, takes a hundred times as long as sending it.
 */
import type { VoiceNote } from 'soundpost-media/voice-note';

type Known = Pick<VoiceNote, 'seconds' | 'durationSeconds' | 'waveform'>;

/** A quarter of a megabyte of them. */
const MOST = 1000;

export interface KnownFile {
  /** Of the file, in hexadecimal digits. */
  readonly sha256: string;
  /** Whether it was to be taken as it is. */
  readonly keepsOpus: boolean;
}

export class KnownNotes {
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
