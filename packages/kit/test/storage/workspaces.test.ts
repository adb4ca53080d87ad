import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { nameOfThisProcess } from 'soundpost-base/process-home';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workspaces } from '../../src/storage/workspaces.ts';

describe('Workspaces', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'workspaces-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const sweep = async (): Promise<void> => (await Workspaces.open(root)).sweep();

  const contents = async (): Promise<string[]> =>
    (await readdir(root, { recursive: true })).filter((name) => name.includes('/'));

  it('gives each piece of work a folder, and takes it away when the work is done', async () => {
    const workspaces = await Workspaces.open(root);
    const result = await workspaces.use('job_1', async (folder) => {
      await writeFile(join(folder, 'source'), 'bytes');
      expect((await contents()).some((name) => name.endsWith('/source'))).toBe(true);
      return 'done';
    });
    expect(result).toBe('done');
    expect(await contents()).toEqual([]);
  });

  it('takes the folder away when the work fails', async () => {
    const workspaces = await Workspaces.open(root);
    const failing = workspaces.use('job_1', async (folder) => {
      await writeFile(join(folder, 'source'), 'bytes');
      throw new Error('broken');
    });
    await expect(failing).rejects.toThrow('broken');
    expect(await contents()).toEqual([]);
  });

  it('removes what a killed process left, and leaves alone what a living one or another host uses', async () => {
    const script = `
      import { Workspaces } from ${JSON.stringify(new URL('../../src/storage/workspaces.ts', import.meta.url).href)};
      const workspaces = await Workspaces.open(process.argv[1]);
      await workspaces.use('job_1', async () => {
        process.stdout.write('ready');
        await new Promise((resolve) => setInterval(resolve, 2 ** 30));
      });`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, root], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    const ofOtherHost = join(root, 'elsewhere.1.1');
    await mkdir(ofOtherHost);

    await sweep();
    expect(await readdir(root)).toContainEqual(expect.stringMatching(new RegExp(`\\.${child.pid}\\.`)));

    child.kill('SIGKILL');
    await once(child, 'exit');
    await sweep();
    expect(await readdir(root)).toEqual(['elsewhere.1.1']);
  });

  // Broken by hand (packages/base/src/process-home.ts): every error of reading taken for "no such process". The living one was cleared away.
  it('takes nobody for dead whom it cannot look at: a process that has no file left to open', async () => {
    const script = `
      import { openSync } from 'node:fs';
      import { isOfDeadProcess, nameOfThisProcess } from ${JSON.stringify(new URL('../../../base/src/process-home.ts', import.meta.url).href)};
      const [living, dead] = process.argv.slice(1);
      try {
        for (;;) openSync('/dev/null');
      } catch (error) {
        const found = [error.code, await isOfDeadProcess(living), await isOfDeadProcess(dead)];
        const own = await nameOfThisProcess();
        process.stdout.write(JSON.stringify([...found, await isOfDeadProcess(own)]));
      }`;
    const living = await nameOfThisProcess();
    const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await once(gone, 'exit');
    const child = spawn(
      'sh',
      [
        ...['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', script],
        ...[living, `${hostname()}.${gone.pid}.100`],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [told] = await once(child.stdout.setEncoding('utf8'), 'data');
    expect(JSON.parse(told)).toEqual(['EMFILE', false, true, false]);
  });

  it('removes what another host has not worked in for a day: a container that was replaced', async () => {
    const hours = (count: number): Date => new Date(Date.now() - count * 3_600_000);
    for (const [name, age] of [
      ['gone.7.100', hours(25)],
      ['elsewhere.7.100', hours(23)],
      ['no-process', hours(25)],
    ] as const) {
      await mkdir(join(root, name));
      await utimes(join(root, name), age, age);
    }
    await sweep();
    expect((await readdir(root)).toSorted()).toEqual(['elsewhere.7.100', 'no-process']);
  });

  it('does not take a process that has a dead one’s pid for it', async () => {
    // pid 1 lives on every system, but it was not started at tick 7 (or at least this folder is not its own).
    const stale = `${hostname()}.1.7`;
    await mkdir(join(root, stale));
    // A start waits for no leftovers.
    const workspaces = await Workspaces.open(root);
    expect(await readdir(root)).toContain(stale);
    await workspaces.sweep();
    expect(await readdir(root)).not.toContain(stale);
  });
});
