/** What a killed worker may leave of its tools is ended, and nothing else is. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from 'soundpost-testing/processes';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { endStrayTools } from '../src/stray-tools.ts';

let root: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'soundpost-strays-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  await rm(root, { recursive: true, force: true });
});

async function start(file: string, ...args: string[]): Promise<ChildProcess> {
  const child = spawn(file, args, { stdio: ['pipe', 'ignore', 'ignore'] });
  children.push(child);
  await once(child, 'spawn');
  return child;
}

/** bubblewrap's halves, held in their first moment: the outer one waits for the descriptor before it goes on. */
const bwrap = (folder: string) =>
  start('bwrap', '--block-fd', '0', '--ro-bind', '/', '/', '--bind', folder, folder, 'true');

it('ends what was to work in the folder, in whichever place of its arguments that stands', async () => {
  const dead = join(root, 'host.7.1');
  await mkdir(join(dead, 'job_1'), { recursive: true });
  const strays = [
    await bwrap(join(dead, 'job_1')),
    await start('ffmpeg', '-nostdin', '-re', '-f', 'lavfi', '-i', 'anullsrc', `file:${dead}/job_1/out.wav`),
  ];
  const ends = strays.map((stray) => once(stray, 'exit'));
  await endStrayTools(dead);
  expect((await Promise.all(ends)).map(([, signal]) => signal)).toEqual(['SIGKILL', 'SIGKILL']);
});

it('leaves alone the tools of others, and other programs that name the folder', async () => {
  const dead = join(root, 'host.7.1');
  const living = join(root, 'host.7.10');
  await mkdir(living);
  await mkdir(dead);
  const others = [await bwrap(living), await start('tail', '-f', '/dev/null', join(dead, 'file'))];
  const ended = once(await bwrap(dead), 'exit');
  await endStrayTools(dead);
  await ended;
  for (const { pid = 0 } of others) expect(isAlive(pid)).toBe(true);
});
