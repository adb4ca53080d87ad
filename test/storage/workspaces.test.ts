import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workspaces } from '../../src/storage/workspaces.ts';

describe('Workspaces', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'workspaces-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

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

    await Workspaces.open(root);
    expect(await readdir(root)).toContainEqual(expect.stringMatching(new RegExp(`\\.${child.pid}\\.`)));

    child.kill('SIGKILL');
    await once(child, 'exit');
    await Workspaces.open(root);
    expect(await readdir(root)).toEqual(['elsewhere.1.1']);
  });

  it('does not take a process that has a dead one’s pid for it', async () => {
    // pid 1 lives on every system, but it was not started at tick 7 (or at least this folder is not its own).
    const stale = `${hostname()}.1.7`;
    await mkdir(join(root, stale));
    await Workspaces.open(root);
    expect(await readdir(root)).not.toContain(stale);
  });
});
