/** script/ffmpeg on machines of which it builds on some; what a real build holds is in packages/media/test/lean-build.core-all.test.ts. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Machine } from './bare-machine.ts';

let machine: Machine;

/** Unpacks to a source whose `make` makes two tools that tell the flags of `configure`. */
const SOURCE = {
  'dpkg-source': `mkdir -p "$3/libavformat"
printf '#!/bin/sh\\necho "$@" > flags\\n' > "$3/configure"; chmod +x "$3/configure"`,
  make: 'for tool in ffmpeg ffprobe; do { echo "#!/bin/sh"; echo "echo $(cat flags)"; } > $tool; chmod +x $tool; done',
};

beforeEach(async () => {
  machine = await Machine.make();
  for (const tool of ['cat', 'awk', 'sort', 'tail', 'nproc', 'mkfifo']) {
    await symlink(`/usr/bin/${tool}`, join(machine.folder, 'bare', tool));
  }
  // The machine that runs the tests may be no Debian.
  const script = await readFile(machine.path('script/ffmpeg'), 'utf8');
  const etc = script.replaceAll('/etc/', `${machine.folder}/etc/`);
  await writeFile(machine.path('script/ffmpeg'), etc.replaceAll('/usr/share/', `${machine.folder}/share/`));
  await writeFile(machine.path('script/ffmpeg-flags.ts'), "console.log('--one\\n--two=a b');");
  await mkdir(machine.path('packages/media/src'), { recursive: true });
  await writeFile(machine.path('packages/media/src/requirements.ts'), "export const OLDEST_FFMPEG = '5.1';");
  await mkdir(join(machine.folder, 'etc/apt/sources.list.d'), { recursive: true });
  await mkdir(join(machine.folder, 'share/keyrings'), { recursive: true });
  await writeFile(join(machine.folder, 'etc/os-release'), 'ID=debian\n');
  await writeFile(join(machine.folder, 'share/keyrings/debian-archive-keyring.gpg'), 'keys');
  await machine.installer(
    'apt-get',
    `case "$*" in *" source "*) echo 'Version: 7:5.1.9-0+deb12u1' > ffmpeg_5.1.9.dsc ;; esac`,
  );
  await machine.command('apt-cache', `echo '  Candidate: 7:5.1.9-0+deb12u1'`);
  await writeFile(machine.path('packages/media/src/start.c'), 'int main() {}');
  await machine.installer('gcc', 'for word; do [ "$before" != -o ] || : > "$word"; before=$word; done');
  for (const tool of ['chown', 'patch', 'nasm', 'pkg-config', 'dpkg']) await machine.command(tool, '');
  for (const [tool, does] of Object.entries(SOURCE)) await machine.installer(tool, does);
});

afterEach(() => rm(machine.folder, { recursive: true, force: true }));

const built = (tool: string): Promise<string> => readFile(machine.path(`.ffmpeg/bin/${tool}`), 'utf8');
const made = async (): Promise<number> =>
  (await machine.calls()).filter((call) => call.startsWith('make ')).length;

describe('script/ffmpeg', () => {
  it('builds with the flags as they are, in a folder that it removes', async () => {
    const { code, output } = await machine.run('script/ffmpeg');
    expect(output).toMatch(/built ffmpeg 5\.1\.9-0\+deb12u1 into \.ffmpeg\/bin in \d+ s\n$/);
    expect(code).toBe(0);
    expect(await built('ffmpeg')).toContain('--one --two=a b --extra-version=0+deb12u1');
    expect(await built('ffprobe')).toContain('--one');
    expect(await readdir(machine.path('.ffmpeg/bin'))).toEqual(['ffmpeg', 'ffprobe', 'soundpost-start']);
    const folder = /in (\/\S+)\n/.exec(output)?.[1] ?? '';
    await expect(readdir(folder)).rejects.toThrow('ENOENT');
    expect(await readdir(machine.path('.ffmpeg'))).toEqual(['bin', 'lock', 'stamp']);
  });

  it('builds with the flags of a file without the npm packages, as the image does', async () => {
    await rm(machine.path('script/ffmpeg-flags.ts'));
    await rm(machine.path('package-lock.json'));
    await writeFile(machine.path('flags'), '--of=the file\n--three\n');
    const { code, output } = await machine.run('script/ffmpeg', 'flags');
    expect(code, output).toBe(0);
    expect(await built('ffmpeg')).toContain('--of=the file --three --extra-version=');
    expect((await machine.calls()).filter((call) => call.startsWith('npm '))).toEqual([]);
    expect(await machine.run('script/ffmpeg', 'flags')).toEqual({ code: 0, output: '' });
  });

  it('asks the archive with its own key alone, and leaves the lists of the system', async () => {
    const place = join(machine.folder, 'etc/apt/sources.list.d');
    await writeFile(
      join(place, 'debian.sources'),
      'Types: deb\nURIs: http://mirror\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN\n .\nEnabled: yes\n',
    );
    await writeFile(
      join(place, 'other.list'),
      'deb [arch=amd64 signed-by=/other] https://other stable main\n# deb x\n',
    );
    const lists = `for word; do case $word in Dir::Etc::SourceParts=*) cat "\${word#*=}"/* ;; esac; done > "${machine.folder}/lists"`;
    const source = `case "$*" in *" source "*) echo 'Version: 5.1.9-1' > ffmpeg.dsc ;; esac`;
    await machine.installer('apt-get', `${lists}\n${source}`);
    expect((await machine.run('script/ffmpeg')).code).toBe(0);
    const keyring = `${machine.folder}/share/keyrings/debian-archive-keyring.gpg`;
    expect(await readFile(join(machine.folder, 'lists'), 'utf8')).toBe(
      `Types: deb-src\nSigned-By: ${keyring}\nURIs: http://mirror\nSuites: bookworm\nComponents: main\nEnabled: yes\n` +
        `deb-src [signed-by=${keyring}] https://other stable main\n`,
    );
    const asked = (await machine.calls()).filter((call) => call.startsWith('apt-get -q -o'));
    expect(asked).toHaveLength(2);
    for (const call of asked) expect(call).toContain('AllowUnauthenticated=false');
  });

  const LISTS = [
    'deb http://mirror/debian bookworm main\n',
    'deb [arch=amd64] http://mirror/debian-security bookworm-security main\n',
    'deb http://mirror/debian oldstable-updates main\n',
  ];
  const ofRelease = (text: string) => writeFile(join(machine.folder, 'etc/os-release'), text);
  /** What apt-get was given as its lists. */
  async function askedLists(): Promise<string> {
    await writeFile(join(machine.folder, 'etc/apt/sources.list'), LISTS.join(''));
    const lists = `for word; do case $word in Dir::Etc::SourceParts=*) cat "\${word#*=}"/* ;; esac; done > "${machine.folder}/lists"`;
    const source = `case "$*" in *" source "*) echo 'Version: 7:7.1.5-0+deb13u1' > ffmpeg.dsc ;; esac`;
    await machine.installer('apt-get', `${lists}\n${source}`);
    const { code, output } = await machine.run('script/ffmpeg');
    expect(code, output).toBe(0);
    return readFile(join(machine.folder, 'lists'), 'utf8');
  }

  it('takes the source of Debian 13 on Debian 12, which has its keys', async () => {
    await ofRelease('ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n');
    await writeFile(join(machine.folder, 'share/keyrings/debian-archive-trixie-stable.gpg'), 'keys');
    const signed = `deb-src [signed-by=${machine.folder}/share/keyrings/debian-archive-keyring.gpg]`;
    expect(await askedLists()).toBe(
      `${signed} http://mirror/debian trixie main\n` +
        `${signed} http://mirror/debian-security trixie-security main\n` +
        `${signed} http://mirror/debian trixie-updates main\n`,
    );
  });

  it.each([
    ['debian', 'ID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n'],
    ['ubuntu', 'ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n'],
  ])('takes its own release’s source on %s otherwise', async (id, release) => {
    await ofRelease(release);
    const keyring = join(machine.folder, `share/keyrings/${id}-archive-keyring.gpg`);
    await writeFile(keyring, 'keys');
    const own = LISTS.map((line) => line.replace(/^deb (\[.*?\] )?/, `deb-src [signed-by=${keyring}] `));
    expect(await askedLists()).toBe(own.join(''));
  });

  it('does and says nothing the second time, also without what it builds with', async () => {
    await machine.run('script/ffmpeg');
    for (const tool of ['gcc', 'make', 'dpkg-source']) await rm(join(machine.folder, 'bin', tool));
    const before = await machine.calls();
    expect(await machine.run('script/ffmpeg')).toEqual({ code: 0, output: '' });
    expect(await machine.calls()).toEqual(before);
  });

  it.each([
    ['the flags', () => writeFile(machine.path('script/ffmpeg-flags.ts'), "console.log('--three');")],
    ['the patch', () => writeFile(machine.path('script/ffmpeg.patch'), 'another')],
    ['the version of the system', () => machine.command('apt-cache', `echo '  Candidate: 7:5.1.10'`)],
    ['a tool, which is gone', () => rm(machine.path('.ffmpeg/bin/ffprobe'))],
  ])('builds again after a change of %s', async (_, change) => {
    await machine.run('script/ffmpeg');
    await change();
    expect((await machine.run('script/ffmpeg')).output).toContain('built ffmpeg');
    expect(await made()).toBe(2);
  });

  it('of two at a time lets one build', async () => {
    const both = await Promise.all([machine.run('script/ffmpeg'), machine.run('script/ffmpeg')]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(await made()).toBe(1);
  });

  it('that is killed leaves what works, and the next one builds', async () => {
    await machine.run('script/ffmpeg');
    await writeFile(machine.path('script/ffmpeg.patch'), 'another');
    await machine.installer('make', `: > "${machine.folder}/begun"; exec sleep 1000`);
    const env = { PATH: `${machine.folder}/bin:${machine.folder}/bare`, TMPDIR: machine.folder };
    const killed = spawn(machine.path('script/ffmpeg'), { detached: true, stdio: 'ignore', env });
    const closed = once(killed, 'exit');
    await until('it builds', () =>
      readFile(join(machine.folder, 'begun')).then(
        () => true,
        () => false,
      ),
    );
    process.kill(-(killed.pid ?? 0), 'SIGKILL');
    await closed;
    expect(await built('ffmpeg')).toContain('--one');
    await machine.installer('make', SOURCE.make);
    expect((await machine.run('script/ffmpeg')).code).toBe(0);
  });

  it('that fails shows why, and keeps what was there', async () => {
    await machine.run('script/ffmpeg');
    await writeFile(machine.path('script/ffmpeg.patch'), 'another');
    await machine.installer('make', 'echo "lame.h: no such file"; exit 2');
    const { code, output } = await machine.run('script/ffmpeg');
    expect(output).toMatch(/lame\.h: no such file\nffmpeg: the build failed, see above\.\n$/);
    expect(code).toBe(1);
    expect(await built('ffmpeg')).toContain('--one');
  });

  it.each([
    [
      'on a system of another kind',
      () => writeFile(join(machine.folder, 'etc/os-release'), 'ID=fedora\n'),
      'this is neither',
    ],
    [
      'on a Debian 12 that does not know the keys of 13',
      () =>
        writeFile(
          join(machine.folder, 'etc/os-release'),
          'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
        ),
      'does not know the keys of trixie; update that package, or go on with the ffmpeg on the PATH',
    ],
    ['without apt-get', () => rm(join(machine.folder, 'bin/apt-get')), 'this is neither'],
    ['without its archive', () => machine.installer('apt-get', 'exit 100'), 'could not be fetched'],
    [
      'with a version that is too old',
      () => machine.command('dpkg', 'exit 1'),
      '5.1 is the oldest that works',
    ],
    [
      'for somebody who may not install what is missing',
      async () => {
        await rm(join(machine.folder, 'bin/nasm'));
        await machine.command('id', 'echo 1000');
      },
      'let an administrator run: apt-get update && apt-get install -y --no-install-recommends nasm',
    ],
  ])('%s says so in one sentence, with an exit code of its own', async (_, change, sentence) => {
    await change();
    const { code, output } = await machine.run('script/ffmpeg');
    expect(output.split('\n').at(-2)).toContain(sentence);
    expect(code).toBe(69);
  });
});
