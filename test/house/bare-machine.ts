/** A machine of which little exists, for scripts that bring the rest. */
import { chmod, cp, mkdir, mkdtemp, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Outcome, run } from './command.ts';
import { projectFolder } from './planted-tree.ts';

/** What a bare system has: the tools that POSIX and Debian's essential packages bring. */
const bareTools =
  'bash sh env ln dirname mkdir mktemp cmp cp cut mv rm sed sleep touch tr paste tar gzip uname chmod flock seq true'.split(
    ' ',
  );

/** A checkout on a machine of which only the commands in `bin` exist. Each installer writes down how it was called. */
export class Machine {
  readonly folder: string;
  constructor(folder: string) {
    this.folder = folder;
  }

  /** Node 24, npm, root, apt-get, ffmpeg, bubblewrap, Redis, and what the tests need; nothing of it does anything. */
  static async make(): Promise<Machine> {
    const folder = await mkdtemp(join(tmpdir(), 'soundpost-bootstrap-'));
    const machine = new Machine(folder);
    for (const name of ['bin', 'bare', 'checkout']) await mkdir(join(folder, name));
    for (const tool of bareTools) {
      const found = ['/bin', '/usr/bin'].map((place) => join(place, tool));
      for (const path of found) {
        if (await stat(path).catch(() => undefined))
          await symlink(path, join(folder, 'bare', tool)).catch(() => undefined);
      }
    }
    for (const name of ['script', 'package.json'])
      await cp(join(projectFolder, name), machine.path(name), { recursive: true });
    // They have tests of their own.
    for (const script of ['scalar', 'pages', 'helm'])
      await writeFile(machine.path(`script/${script}`), '#!/bin/sh\n');
    // The real policy belongs to the machine that runs the tests.
    const script = await readFile(machine.path('script/bootstrap'), 'utf8');
    await writeFile(
      machine.path('script/bootstrap'),
      script.replace('policy=/usr/sbin/policy-rc.d', `policy=${machine.folder}/policy-rc.d`),
    );
    await writeFile(machine.path('package-lock.json'), '{}');
    await symlink(process.execPath, join(folder, 'bin/node'));
    await machine.command('id', 'echo 0');
    await machine.installer('npm', 'mkdir -p node_modules');
    await machine.installer('apt-get');
    await machine.installer('update-rc.d');
    for (const name of ['ffmpeg', 'bwrap', 'redis-server']) await machine.command(name, '');
    return machine;
  }

  async command(name: string, script: string): Promise<void> {
    const path = join(this.folder, 'bin', name);
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
  }

  /** A command that notes its arguments and does `script`. */
  async installer(name: string, script = ''): Promise<void> {
    await this.command(name, `echo "${name} $*" >> "${this.folder}/calls"\n${script}`);
  }

  async calls(): Promise<string[]> {
    const text = await readFile(join(this.folder, 'calls'), 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line !== '');
  }

  bootstrap(...args: string[]): Promise<Outcome> {
    return this.run('script/bootstrap', ...args);
  }

  run(script: string, ...args: string[]): Promise<Outcome> {
    const search = [join(this.folder, 'bin'), join(this.folder, 'bare')].join(delimiter);
    // Started from another folder, as a script may be.
    return run('/', this.path(script), args, {
      PATH: search,
      HOME: this.folder,
    });
  }

  path(name: string): string {
    return join(this.folder, 'checkout', name);
  }
}
