/** What was said, and when. Times are seconds. */

export interface Segment {
  readonly start: number;
  /** Not before `start`. */
  readonly end: number;
  /** Without control characters and line breaks; never empty. */
  readonly text: string;
}

export interface Transcript {
  /** BCP 47; null where it is not known. */
  readonly language: string | null;
  /** Of the audio, spoken or silent. */
  readonly durationSeconds: number;
  /** In the order in which they begin. */
  readonly segments: readonly Segment[];
}
