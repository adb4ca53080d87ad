/** The command lines of the container engine and of Compose, as an operator uses them. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Json } from 'soundpost-testing/client';
import { until } from 'soundpost-testing/until';

const run = promisify(execFile);

export const ROOT = join(import.meta.dirname, '..', '..');

/** Made by script/test-containers. */
export const IMAGE = process.env.SOUNDPOST_IMAGE ?? 'soundpost';

/** Of a container, network, volume or project: by its beginning script/test-containers finds what a run left. */
export const uniqueName = (): string =>
  `${process.env.SOUNDPOST_TEST_PREFIX ?? 'soundpost-test'}-${randomBytes(4).toString('hex')}`;

/** What the command wrote to standard output. @throws Error with what it wrote to standard error */
export async function docker(...args: readonly string[]): Promise<string> {
  return (await run('docker', args, { cwd: ROOT, maxBuffer: 2 ** 26 })).stdout.trim();
}

/** Exit code and everything that was written, of a command that may fail. */
export async function dockerTries(...args: readonly string[]): Promise<{ code: number; output: string }> {
  return run('docker', args, { cwd: ROOT }).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  );
}

export async function inspect(id: string): Promise<Json> {
  return JSON.parse(await docker('inspect', id))[0];
}

/** Waits until the image's own health check says so. @throws Error with what it said last, and what the container wrote */
export async function healthIs(
  id: string,
  wanted: 'healthy' | 'unhealthy',
  timeoutMs = 120_000,
): Promise<void> {
  let state: Json;
  await until(
    `container ${id} is ${wanted}`,
    async () => {
      state = (await inspect(id)).State;
      return state.Health?.Status === wanted;
    },
    timeoutMs,
  ).catch(async (error: Error) => {
    const { output } = await dockerTries('logs', '--tail', '20', id);
    throw new Error(`${error.message}: ${JSON.stringify(state)}\n${output}`);
  });
}

/** Programs that run in a container, each with its arguments. */
async function programsOf(id: string): Promise<string[]> {
  const [, ...lines] = (await docker('top', id, '-o', 'pid,args')).split('\n');
  return lines.map((line) => line.trim().replace(/^\d+\s+/, ''));
}

/** Output of a job of which ffmpeg has something for seconds, so that nobody misses it who asks a little late. */
export const LONG_WORK = { format: 'flac', normalize: true, sampleRate: 48_000, channels: 2 };

/** Whether an ffmpeg of its own runs in it, by whatever path it was called. */
export async function isEncoding(id: string): Promise<boolean> {
  return (await programsOf(id)).some((program) => /^(\S*\/)?ffmpeg /.test(program));
}

/** Runs JavaScript by the Node of a running container, and answers what it printed. */
export async function evaluateIn(id: string, code: string): Promise<string> {
  return docker('exec', id, 'node', '--input-type=module', '--eval', code);
}

/** Each Compose that this machine has: 2 is a plugin of docker, 1.29 a program of its own. */
export async function composes(): Promise<{ name: string; command: readonly string[] }[]> {
  const candidates = [['docker', 'compose'], ['docker-compose']];
  const found = await Promise.all(
    candidates.map(async (command) => {
      const [file = '', ...args] = [...command, 'version', '--short'];
      const version = await run(file, args).catch(() => undefined);
      return version === undefined ? [] : [{ name: `Compose ${version.stdout.trim()}`, command }];
    }),
  );
  if (found.flat().length === 0)
    throw new Error('Compose is missing; install it: apt-get install docker-compose');
  return found.flat();
}
