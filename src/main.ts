#!/usr/bin/env node
/** The command line. */
import { CommanderError } from 'commander';
import { errorAnswer, exitCodeOf, sentenceOf } from './commands/ending.ts';
import { createProgram } from './commands/program.ts';

const complain = (sentence: string): void => {
  process.stderr.write(`soundpost: ${sentence}\n`);
};
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

// A reader that has enough, such as head, is no fault of anybody.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exitCode ??= 1;
  });
}

try {
  await createProgram({ say, complain }).parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
  const sentence = sentenceOf(error);
  if (sentence !== undefined) complain(sentence);
  if (!(error instanceof CommanderError) && process.argv.includes('--json')) {
    say(JSON.stringify(errorAnswer(error)));
  }
}
