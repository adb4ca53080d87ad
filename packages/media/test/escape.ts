/** escape.c, run in the place of ffprobe: what somebody gets who has taken it over. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type MediaTools, runFfprobe } from '../src/run.ts';

/** Built, and linked so that it runs where no library is in sight. */
export function buildEscape(folder: string): string {
  const program = join(folder, 'escape');
  execFileSync('cc', ['-static', '-O1', '-o', program, join(import.meta.dirname, 'escape.c')]);
  return program;
}

interface Targets {
  /** The one file that may be written. */
  readonly output: string;
  readonly secret: string;
  readonly socket: string;
  readonly port: number;
}

/** By the name of an attempt, how much was had: 1 of what can only be had or not. */
export async function tryEscape(
  tools: MediaTools,
  program: string,
  { output, secret, socket, port }: Targets,
  maxFileBytes: number,
): Promise<Readonly<Record<string, number>>> {
  const { stdout } = await runFfprobe(
    { ...tools, ffprobePath: program },
    ['--escape', output, secret, socket, String(port)],
    {
      signal: new AbortController().signal,
      wallLimitMs: 60_000,
      access: { reads: [], writes: [output] },
      maxFileBytes,
      maxStdoutBytes: 100_000,
    },
  );
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([name = '', had]) => [name, Number(had)]),
  );
}
