/** The command line. */
import { errorAnswer, exitCodeOf, sentenceOf } from './cli/ending.ts';
import { createProgram } from './cli/program.ts';

const complain = (sentence: string): void => {
  process.stderr.write(`soundpost: ${sentence}\n`);
};
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

/** What standard output failed with, which is told already. */
let broken: unknown;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exitCode ??= 1;
  // A reader that has enough, such as head, is no fault of anybody.
  if (error.code === 'EPIPE' || broken !== undefined) return;
  broken = error;
  complain(`standard output cannot be written: ${error.message}`);
});
// Nobody is left to be told. What a terminal that went away means for the work is SIGHUP's to say.
process.stderr.on('error', () => undefined);

try {
  await createProgram({ say, complain }).parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
  const sentence = error === broken ? undefined : sentenceOf(error);
  if (sentence !== undefined) complain(sentence);
  if (process.exitCode !== 0 && process.argv.includes('--json')) {
    say(JSON.stringify(errorAnswer(error)));
  }
}
