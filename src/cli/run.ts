/** Runs one command from its arguments to its exit code; does not end the process. */
import { errorAnswer, exitCodeOf, sentenceOf } from './ending.ts';
import { createProgram } from './program.ts';
import type { Streams } from './streams.ts';

/**
 * @param args without Node and the script
 * @param isReported whether the error was already reported
 * @returns the exit code
 */
export async function run(
  args: readonly string[],
  streams: Streams,
  isReported: (error: unknown) => boolean = () => false,
): Promise<number> {
  const say = (line: string): void => {
    streams.stdout.write(`${line}\n`);
  };
  const complain = (sentence: string): void => {
    streams.stderr.write(`soundpost: ${sentence}\n`);
  };
  let exitCode = 0;
  const end = (code: number): void => {
    exitCode = code;
  };
  try {
    await createProgram({ say, complain, streams, end }).parseAsync(args, { from: 'user' });
  } catch (error) {
    exitCode = exitCodeOf(error);
    const sentence = isReported(error) ? undefined : sentenceOf(error);
    if (sentence !== undefined) complain(sentence);
    if (exitCode !== 0 && args.includes('--json')) say(JSON.stringify(errorAnswer(error)));
  }
  return exitCode;
}
