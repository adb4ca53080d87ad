import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

/** An installed package: the real command, with a program that says it was loaded. */
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-entry-'));
  await cp(join(import.meta.dirname, '../../bin'), join(folder, 'bin'), { recursive: true });
  await mkdir(join(folder, 'dist'));
  await writeFile(join(folder, 'dist/main.js'), "console.log('loaded', process.argv.slice(2).join(' '));");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function run(engines: string, environment: NodeJS.ProcessEnv = {}) {
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ type: 'module', engines: { node: engines } }),
  );
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(folder, 'bin/soundpost.js'), 'doctor', '--json'],
    { encoding: 'utf8', env: environment },
  );
  return { status, stdout, stderr };
}

describe('the command', () => {
  it('loads the program where Node is new enough', async () => {
    expect(await run('>=24')).toEqual({ status: 0, stdout: 'loaded doctor --json\n', stderr: '' });
  });

  it('refuses an older Node than `engines` wants, in one sentence, and loads nothing', async () => {
    const { node } = process.versions;
    expect(await run('>=99')).toEqual({
      status: 2,
      stdout: '',
      stderr: `soundpost: Node ${node} is too old: install Node 99 or newer from https://nodejs.org.\n`,
    });
  });

  it('names the script that fetches Node in a checkout', async () => {
    await mkdir(join(folder, 'src'));
    await writeFile(join(folder, 'src/main.ts'), '');
    expect((await run('>=99')).stderr).toMatch(
      /too old: start \.\/script\/soundpost, which fetches one\.\n$/,
    );
  });

  it.each([
    [{ HOME: 'home' }, 'home/.cache/soundpost'],
    [{ HOME: 'home', XDG_CACHE_HOME: 'caches' }, 'caches/soundpost'],
    [{ HOME: 'home', NODE_COMPILE_CACHE: 'named' }, 'named'],
  ])('keeps what Node compiled, with %j in %s', async (environment, expected) => {
    const inFolder = Object.entries(environment).map(([name, path]) => [name, join(folder, path)]);
    expect((await run('>=24', Object.fromEntries(inFolder))).status).toBe(0);
    expect(await readdir(join(folder, expected))).toEqual([expect.stringContaining(process.version)]);
    const [kept] = ['named', 'caches', 'home'].filter((name) => expected.startsWith(name));
    expect(await readdir(folder)).toEqual(['bin', 'dist', kept, 'package.json'].toSorted());
  });

  it('works for a user without a home', async () => {
    expect((await run('>=24')).stdout).toBe('loaded doctor --json\n');
    expect((await readdir(folder)).toSorted()).toEqual(['bin', 'dist', 'package.json']);
  });
});
