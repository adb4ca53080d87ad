import { cp, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Machine } from './bare-machine.ts';
import { run } from './command.ts';
import { projectFolder } from './planted-tree.ts';

let machine: Machine;

beforeEach(async () => {
  machine = await Machine.make();
});

afterEach(() => rm(machine.folder, { recursive: true, force: true }));

describe('script/bootstrap', () => {
  const FLAGS = '--ignore-scripts --no-audit --no-fund --no-progress';
  const PRODUCTION = `npm ci --omit=dev ${FLAGS}`;
  const EVERYTHING = `npm ci ${FLAGS}`;
  const ADDED = `npm install --no-save ${FLAGS}`;

  it('installs what production needs of the lock file, without install scripts, and prints the command first', async () => {
    const { code, output } = await machine.bootstrap();
    expect(output).toBe(`+ ${PRODUCTION}\n`);
    expect(await machine.calls()).toEqual([PRODUCTION]);
    expect(code).toBe(0);
  });

  it.each([[[]], [['--test']]])('does and says nothing the second time: %j', async (args) => {
    await machine.bootstrap(...args);
    const before = await machine.calls();
    expect(await machine.bootstrap(...args)).toEqual({ code: 0, output: '' });
    expect(await machine.calls()).toEqual(before);
  });

  it('adds the packages of the tests to those of production', async () => {
    await machine.bootstrap();
    await machine.bootstrap('--test');
    expect(await machine.calls()).toEqual([PRODUCTION, ADDED]);
  });

  it('leaves the packages of the tests where they are', async () => {
    await machine.bootstrap('--test');
    expect(await machine.bootstrap()).toEqual({ code: 0, output: '' });
    expect(await machine.calls()).toEqual([EVERYTHING]);
  });

  it.each([
    ['of production', [], PRODUCTION],
    ['of the tests too', ['--test'], EVERYTHING],
  ])('installs the packages again when the lock file has changed, those %s', async (_, first, command) => {
    await machine.bootstrap(...first);
    await writeFile(machine.path('package-lock.json'), '{"changed":1}');
    await machine.bootstrap();
    expect(await machine.calls()).toEqual([command, command]);
  });

  it('installs the packages again when the last installation failed half-way', async () => {
    await machine.installer('npm', 'mkdir -p node_modules; exit 1');
    expect((await machine.bootstrap()).code).not.toBe(0);
    await machine.installer('npm');
    await machine.bootstrap();
    expect(await machine.calls()).toEqual([PRODUCTION, PRODUCTION]);
  });

  it('says how much is there while a download takes its time', async () => {
    await machine.installer(
      'npm',
      'mkdir -p node_modules; for each in $(seq 300); do [ -e node_modules/seen ] || sleep 0.2; done',
    );
    await machine.command(
      'du',
      `touch "${machine.path('node_modules/seen')}"; printf '42\\tnode_modules\\n'`,
    );
    const { code, output } = await machine.bootstrap();
    expect(output).toBe(`+ ${PRODUCTION}\n  42 MB\n`);
    expect(code).toBe(0);
  });

  describe('where Node is too old', () => {
    beforeEach(async () => {
      await rm(join(machine.folder, 'bin/node'));
      await machine.command('node', 'exit 1');
    });

    it('refuses a package that is not the one it knows, and keeps nothing of it', async () => {
      await machine.installer('npm', `echo '[{ "integrity": "sha512-AAAA" }]'`);
      const { code, output } = await machine.bootstrap();
      expect(output).toMatch(/^bootstrap: the package node-\S+ is not the one .* got sha512-AAAA\.$/m);
      expect(code).toBe(1);
      expect(await machine.calls()).toHaveLength(1);
      await expect(stat(machine.path('.node/bin/node'))).rejects.toThrow('ENOENT');
    });

    it('fetches Node to .node/bin/node, and runs npm with it', async () => {
      const script = await readFile(machine.path('script/bootstrap'), 'utf8');
      const known = new RegExp(`node_linux_${process.arch}_integrity='(\\S+)'`).exec(script)?.[1];
      await machine.installer(
        'npm',
        `case $1 in
          pack) for to; do :; done
            mkdir -p "$to/package/bin"
            printf '#!/bin/sh\\nexec "${process.execPath}" "$@"\\n' > "$to/package/bin/node"
            chmod +x "$to/package/bin/node"
            tar -czf "$to/node.tgz" -C "$to" package
            echo '[{ "integrity": "${known}" }]' ;;
          ci) node --version >> "${machine.folder}/calls"; mkdir -p node_modules ;;
        esac`,
      );
      const { code, output } = await machine.bootstrap();
      expect(output).toMatch(/^\+ npm pack node-\S+@24\.\d+\.\d+$/m);
      expect(code, output).toBe(0);
      expect((await machine.calls()).at(-1)).toBe(process.version);
      expect((await machine.bootstrap()).output).toBe('');
    });

    it('takes it from Homebrew on macOS', async () => {
      await machine.command('uname', '[ "$1" = -s ] && echo Darwin || echo arm64');
      await machine.installer('brew', `case $1 in --prefix) echo "${machine.folder}/brewed" ;; esac`);
      await mkdir(join(machine.folder, 'brewed/bin'), { recursive: true });
      await symlink(process.execPath, join(machine.folder, 'brewed/bin/node'));
      const { code, output } = await machine.bootstrap();
      expect(output).toMatch(/^\+ brew install node@24\n\+ npm ci /);
      expect(code).toBe(0);
      expect(await machine.bootstrap()).toEqual({ code: 0, output: '' });
    });

    it('says what is missing where there is no npm', async () => {
      await rm(join(machine.folder, 'bin/npm'));
      const { code, output } = await machine.bootstrap();
      expect(output).toBe(
        'bootstrap: npm is missing; install it (Debian: `apt-get install -y npm`) and start again.\n',
      );
      expect(code).toBe(1);
    });
  });

  describe('where only bubblewrap is missing, without which the service runs too', () => {
    beforeEach(() => rm(join(machine.folder, 'bin/bwrap')));

    it('installs it for somebody who may', async () => {
      const { code } = await machine.bootstrap();
      expect(await machine.calls()).toContainEqual(
        expect.stringMatching(/^apt-get .* install .* bubblewrap$/),
      );
      expect(code).toBe(0);
    });

    it('goes on for somebody who may not, and where there is no apt-get', async () => {
      await machine.command('id', 'echo 1000');
      expect((await machine.bootstrap()).code).toBe(0);
      await machine.command('id', 'echo 0');
      await rm(join(machine.folder, 'bin/apt-get'));
      expect(await machine.bootstrap()).toEqual({ code: 0, output: '' });
    });
  });

  describe('where ffmpeg and Redis are missing', () => {
    const install = 'apt-get -q -o Dpkg::Use-Pty=0 install -y --no-install-recommends ffmpeg redis-server';
    beforeEach(async () => {
      for (const name of ['ffmpeg', 'redis-server']) await rm(join(machine.folder, 'bin', name));
    });

    it('installs them as root, with services forbidden meanwhile and Redis kept from starting at boot', async () => {
      await machine.installer(
        'apt-get',
        `"${machine.folder}/policy-rc.d" >/dev/null; echo "policy $?" >> "${machine.folder}/calls"`,
      );
      const { code, output } = await machine.bootstrap();
      // npm is called meanwhile.
      const calls = (await machine.calls()).filter((call) => !call.startsWith('npm'));
      expect(calls).toEqual([
        'apt-get -q update',
        'policy 101',
        install,
        'policy 101',
        'update-rc.d redis-server disable',
      ]);
      expect(output).toContain(`+ env DEBIAN_FRONTEND=noninteractive ${install}\n`);
      await expect(stat(join(machine.folder, 'policy-rc.d'))).rejects.toThrow('ENOENT');
      expect(code).toBe(0);
    });

    it('installs only what is missing', async () => {
      await machine.command('ffmpeg', '');
      await machine.bootstrap();
      expect(await machine.calls()).toContain(install.replace(' ffmpeg', ''));
    });

    it('leaves a policy alone that stands already', async () => {
      await writeFile(join(machine.folder, 'policy-rc.d'), 'ours');
      await machine.bootstrap();
      expect(await readFile(join(machine.folder, 'policy-rc.d'), 'utf8')).toBe('ours');
    });

    it('takes the policy back when the installation fails', async () => {
      await machine.installer('apt-get', '[ "$2" = update ]');
      const { code, output } = await machine.bootstrap();
      expect(output).toMatch(/^bootstrap: apt-get could not install: ffmpeg redis-server$/m);
      expect(code).toBe(1);
      await expect(stat(join(machine.folder, 'policy-rc.d'))).rejects.toThrow('ENOENT');
    });

    it('uses sudo for a user who may', async () => {
      await machine.command('id', 'echo 1000');
      await machine.command('sudo', '[ "$1" = -n ] && shift; exec "$@"');
      const { output } = await machine.bootstrap();
      expect(output).toContain(`+ sudo env DEBIAN_FRONTEND=noninteractive ${install}\n`);
      expect(await machine.calls()).toContain(install);
    });

    it.each([
      ['there is no sudo', undefined],
      ['sudo wants a password that nobody can type', 'exit 1'],
    ])('gives one sentence with the command where %s', async (_, sudo) => {
      await machine.command('id', 'echo 1000');
      if (sudo) await machine.command('sudo', sudo);
      const { code, output } = await machine.bootstrap();
      expect(output.split('\n').at(-2)).toBe(
        'bootstrap: missing packages that this user may not install; let an administrator run: ' +
          'apt-get update && apt-get install -y --no-install-recommends ffmpeg redis-server',
      );
      expect(code).toBe(1);
      expect(await machine.calls()).toHaveLength(1);
    });

    it('uses Homebrew where that is the package manager', async () => {
      await rm(join(machine.folder, 'bin/apt-get'));
      await machine.installer('brew');
      const { code, output } = await machine.bootstrap();
      expect(output).toContain('+ brew install ffmpeg redis\n');
      expect(await machine.calls()).toContain('brew install ffmpeg redis');
      expect(code).toBe(0);
    });

    it('names what is missing where it knows no package manager', async () => {
      await rm(join(machine.folder, 'bin/apt-get'));
      const { code, output } = await machine.bootstrap();
      expect(output).toMatch(
        /neither apt-get nor brew; install by hand what Debian calls: ffmpeg redis-server$/m,
      );
      expect(code).toBe(1);
    });
  });

  it('adds the programs that only some tests need when it is asked for everything', async () => {
    await machine.bootstrap('--test');
    expect(await machine.calls()).toEqual([EVERYTHING]);
    const { output } = await machine.bootstrap('--all');
    expect(output).toMatch(/^\+ env .*apt-get .*install .*prosody chromium/m);
  });

  it('has every package that packages/testing/src/needs.ts names', async () => {
    const [table = '', needs = ''] = await Promise.all(
      ['script/bootstrap', 'packages/testing/src/needs.ts'].map((file) =>
        readFile(join(projectFolder, file), 'utf8'),
      ),
    );
    const packages = [...needs.matchAll(/package: '(.+)'/g)].flatMap(([, names = '']) => names.split(' '));
    expect(packages.length).toBeGreaterThan(10);
    expect(packages.filter((name) => !new RegExp(`^\\S+ +${name} `, 'm').test(table))).toEqual([]);
  });

  it('brings what script/ffmpeg builds with, and nothing besides, when it is asked to, without Node', async () => {
    await rm(join(machine.folder, 'bin/node'));
    for (const name of ['ffmpeg', 'redis-server']) await rm(join(machine.folder, 'bin', name));
    const { code } = await machine.bootstrap('--ffmpeg');
    const [update, install, ...rest] = await machine.calls();
    expect(update).toBe('apt-get -q update');
    expect(install).toMatch(/ install .* gcc( .*)? make nasm pkg-config dpkg-dev( |$)/);
    expect(install).not.toMatch(/ (ffmpeg|redis-server|bubblewrap)( |$)/);
    expect(rest).toEqual([]);
    expect(code).toBe(0);
  });

  it('adds an engine for containers when it is asked to, and keeps it from starting by itself', async () => {
    const { output } = await machine.bootstrap('--containers');
    expect(output).toMatch(/^\+ env .*apt-get .*install .*docker\.io/m);
    expect(output).toMatch(/^\+ update-rc\.d docker disable$/m);
  });

  it('refuses an option that it does not know', async () => {
    const { code, output } = await machine.bootstrap('--tset');
    expect(output).toBe(
      'bootstrap: unknown option --tset; usage: script/bootstrap [--test | --all | --ffmpeg | --cross | --containers]\n',
    );
    expect(code).toBe(1);
  });
});

describe('the file that shows the API references', () => {
  const scalar = () =>
    run('/', machine.path('script/scalar'), [], {
      PATH: [join(machine.folder, 'bin'), join(machine.folder, 'bare')].join(delimiter),
      HOME: machine.folder,
    });
  beforeEach(() => cp(join(projectFolder, 'script/scalar'), machine.path('script/scalar')));

  it('is fetched by bootstrap', async () => {
    await machine.bootstrap();
    expect(await machine.calls()).toContainEqual(expect.stringContaining('npm pack @scalar/api-reference@'));
  });

  it('is of the package that the script knows, or of none', async () => {
    await machine.installer('npm', `echo '[{ "integrity": "sha512-other" }]'`);
    const { code, output } = await scalar();
    expect(code).toBe(1);
    expect(output).toContain('got sha512-other');
    expect(await stat(machine.path('web/reference/scalar.js')).catch(() => undefined)).toBe(undefined);
  });
});

describe('the Helm that renders the chart', () => {
  it('is fetched by bootstrap --all alone', async () => {
    await writeFile(machine.path('script/helm'), `#!/bin/sh\necho helm >> "${machine.folder}/calls"\n`);
    await machine.bootstrap();
    await machine.bootstrap('--test');
    expect(await machine.calls()).not.toContain('helm');
    await machine.bootstrap('--all');
    expect(await machine.calls()).toContain('helm');
  });

  it('is of the package that the script knows, or of none', async () => {
    await cp(join(projectFolder, 'script/helm'), machine.path('script/helm'));
    await machine.installer('npm', `echo '[{ "integrity": "sha512-other" }]'`);
    await machine.command('uname', 'case $1 in -s) echo Linux ;; *) echo x86_64 ;; esac');
    const { code, output } = await machine.run('script/helm');
    expect(code).toBe(1);
    expect(output).toContain('got sha512-other');
    expect(await stat(machine.path('.cache/helm/helm')).catch(() => undefined)).toBe(undefined);
  });

  it('is the machine’s own where there is none to fetch', async () => {
    await cp(join(projectFolder, 'script/helm'), machine.path('script/helm'));
    await machine.command('uname', 'case $1 in -s) echo Darwin ;; *) echo arm64 ;; esac');
    const { code, output } = await machine.run('script/helm');
    expect([code, output]).toEqual([0, expect.stringContaining('the tests of the chart are left out')]);
    expect(await machine.calls()).toEqual([]);
  });
});
