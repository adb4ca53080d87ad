/** What commands are given to speak with, and how their help shows examples. */

export interface Terminal {
  /** A line on standard output. */
  say(line: string): void;
  /** A line on standard error. */
  complain(sentence: string): void;
}

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}
