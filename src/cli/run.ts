/** One command from its words to its exit code. The process is left to the caller. */
import { errorAnswer, exitCodeOf, sentenceOf } from './ending.ts';
import { createProgram } from './program.ts';
import type { Streams } from './streams.ts';

/**
 * @param args without the names of Node and of the script
 * @param isTold whether somebody was told of this error already
 * @returns the exit code
 */
export async function run(
  args: readonly string[],
  streams: Streams,
  isTold: (error: unknown) => boolean = () => false,
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
    const sentence = isTold(error) ? undefined : sentenceOf(error);
    if (sentence !== undefined) complain(sentence);
    if (exitCode !== 0 && args.includes('--json')) say(JSON.stringify(errorAnswer(error)));
  }
  return exitCode;
}
