/** One file of the corpus. */
export interface HostileFile {
  /** Unique, says what it is, and ends as a media file does. */
  readonly name: string;
  readonly family: 'whole' | 'mutated' | 'boxes' | 'playlist' | 'bomb' | 'no file';
  /** `completed`, `refused`, or either where nobody can say what the damage leaves. */
  readonly expected: 'completed' | 'refused' | 'either';
  /** Puts it where it is to lie; `neighbour` is a playable file in the same folder. */
  place(path: string, neighbour: string): Promise<void>;
}
