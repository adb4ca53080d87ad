/** A command as main.ts runs it, inside the test's process. What only a process shows (signals, streams, its exit) starts one: test/service.ts. */
import { vi } from 'vitest';
import { exitCodeOf, sentenceOf } from '../src/cli/ending.ts';
import { createProgram } from '../src/cli/program.ts';

export interface CommandAnswer {
  readonly code: number;
  /** Lines on standard output, then on standard error. */
  readonly said: string;
}

/** @param environment besides the test's own; the log is silent unless it says otherwise. One command at a time: they share the environment. */
export async function runCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandAnswer> {
  const said: string[] = [];
  const hints: string[] = [];
  const takesErrors = {
    writeErr: (text: string) => hints.push(text.trimEnd()),
    writeOut: (text: string) => said.push(text.trimEnd()),
  };
  const program = createProgram({ say: (line) => said.push(line), complain: (line) => hints.push(line) });
  for (const command of [program, ...program.commands.flatMap((one) => [one, ...one.commands])])
    command.configureOutput(takesErrors);
  for (const [name, value] of Object.entries({ LOG_LEVEL: 'silent', ...environment }))
    vi.stubEnv(name, value);
  let code = 0;
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    code = exitCodeOf(error);
    const sentence = sentenceOf(error);
    if (sentence !== undefined) hints.push(sentence);
  } finally {
    vi.unstubAllEnvs();
  }
  return { code, said: [...said, ...hints].join('\n') };
}
