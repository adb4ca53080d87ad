/** Runs `doctor` as a command, in an empty folder of its own. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inherited } from 'soundpost-testing/inherited';
import { z } from 'zod';
import { run } from '../../house/command.ts';

const MAIN = resolve(import.meta.dirname, '../../../src/main.ts');

const Row = z.strictObject({
  check: z.string(),
  verdict: z.enum(['ok', 'warning', 'fault']),
  found: z.string(),
  remedy: z.string().optional(),
  command: z.string().optional(),
});
const Report = z.strictObject({ verdict: z.enum(['ok', 'warning', 'fault']), checks: z.array(Row) });

export interface Diagnosis {
  readonly code: number;
  readonly verdict: string;
  /** What it says of one part, in order. */
  of(check: string): z.infer<typeof Row>[];
  /** Faults of every part. */
  readonly faults: readonly string[];
  /** What lies in the folder that it was run in, afterwards. */
  readonly left: readonly string[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Ports that nobody else listens on, so that only what a test is about is at fault. */
const QUIET = { API_PORT: '0', GATEWAY_PORT: '0', WORKER_PORT: '0' };

/** @param prefix of the command, for another view of the machine */
export async function diagnose(
  environment: Environment = {},
  prefix: readonly string[] = [],
): Promise<Diagnosis> {
  const { code, output, left } = await doctor(['--json'], environment, prefix);
  const { verdict, checks } = Report.parse(JSON.parse(output));
  return {
    code,
    verdict,
    of: (wanted) => checks.filter(({ check }) => check === wanted),
    faults: checks.filter((row) => row.verdict === 'fault').map(({ check, found }) => `${check}: ${found}`),
    left,
  };
}

export async function doctor(
  args: readonly string[],
  environment: Environment = {},
  prefix: readonly string[] = [],
): Promise<{ code: number; output: string; left: readonly string[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'soundpost-doctor-'));
  try {
    const [command = '', ...rest] = [...prefix, process.execPath, MAIN, 'doctor', ...args];
    const env = { PATH: process.env.PATH, HOME: folder, ...QUIET, ...inherited, ...environment };
    const outcome = await run(folder, command, rest, env);
    return { ...outcome, left: await readdir(folder) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
