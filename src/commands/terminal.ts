/** What a command speaks with. */
export interface Terminal {
  /** A line on standard output. */
  say(line: string): void;
  /** A line on standard error. */
  complain(sentence: string): void;
}
