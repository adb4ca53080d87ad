/** A command as main.ts runs it, inside the test's process. What only a process shows (signals, streams, its exit) starts one: packages/testing/src/service.ts. */
import { Readable, Writable } from 'node:stream';
import { vi } from 'vitest';
import { run } from '../src/cli/run.ts';

export interface CommandAnswer {
  readonly code: number;
  /** What it wrote on standard output, then on standard error, without the line break at the end. */
  readonly said: string;
}

/** @param environment besides the test's own; the log is silent unless it says otherwise. One command at a time: they share the environment. */
export async function runCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandAnswer> {
  const stdout = new Collected();
  const stderr = new Collected();
  for (const [name, value] of Object.entries({ LOG_LEVEL: 'silent', ...environment })) {
    vi.stubEnv(name, value);
  }
  try {
    const code = await run(args, { stdin: Readable.from([]), stdout, stderr });
    return { code, said: `${stdout.text}${stderr.text}`.trimEnd() };
  } finally {
    vi.unstubAllEnvs();
  }
}

class Collected extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8');
    done();
  }
}
