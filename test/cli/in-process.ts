/** A command as src/main.ts runs it, but in the test's process: one at a time, since the environment is the process's. */
import { errorAnswer, exitCodeOf, sentenceOf } from '../../src/cli/ending.ts';
import { createProgram } from '../../src/cli/program.ts';

export interface CommandEnd {
  readonly code: number;
  /** Everything that it said, on both streams. */
  readonly said: string;
}

/** @param environment what is set besides; everything is as before once the command has ended */
export async function command(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<CommandEnd> {
  const said: string[] = [];
  const speak = (line: string): void => {
    said.push(line);
  };
  const before = { ...process.env };
  const codeBefore = process.exitCode;
  Object.assign(process.env, { LOG_LEVEL: 'silent' }, environment);
  try {
    const program = createProgram({ say: speak, complain: speak });
    // Where src/main.ts lets commander write to the process's own streams.
    for (const each of [program, ...program.commands.flatMap((group) => [group, ...group.commands])]) {
      each.configureOutput({ writeOut: speak, writeErr: speak });
    }
    await program.parseAsync(args, { from: 'user' });
    return { code: Number(process.exitCode ?? 0), said: said.join('\n').trim() };
  } catch (error) {
    const sentence = sentenceOf(error);
    if (sentence !== undefined) speak(sentence);
    if (args.includes('--json')) speak(JSON.stringify(errorAnswer(error)));
    return { code: exitCodeOf(error), said: said.join('\n').trim() };
  } finally {
    process.exitCode = codeBefore;
    for (const name of Object.keys(process.env)) {
      if (before[name] === undefined) delete process.env[name];
    }
    Object.assign(process.env, before);
  }
}
