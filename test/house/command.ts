import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname } from 'node:path';
import { text } from 'node:stream/consumers';

/** The environment of a command: it finds the Node that runs the tests, and no registry. */
export const ownNode = {
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  FORCE_COLOR: undefined,
  NO_COLOR: '1',
  npm_config_registry: 'http://127.0.0.1:9/',
};

export interface Outcome {
  /** Exit code. */
  readonly code: number;
  /** What it wrote: first standard output, then standard error. */
  readonly output: string;
}

/** Runs a command to its end, without input. */
export async function run(
  folder: string,
  command: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string | undefined>> = ownNode,
): Promise<Outcome> {
  const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ]);
  return { code, output: stdout + stderr };
}
