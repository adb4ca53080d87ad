/** Which sandbox is taken, what is out of reach in it, and where its limits are. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { release } from 'node:os';
import { join } from 'node:path';
import { bareTools, extractSeveral, noAbort } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { systemTools } from 'soundpost-testing/media-tools';
import { descendants, isAlive, programOf } from 'soundpost-testing/processes';
import { mediaFolder } from 'soundpost-testing/sources';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { detectSandbox, limitsAlone } from '../src/abilities.ts';
import { type MediaTools, type RunLimits, runFfmpeg, runFfprobe } from '../src/run.ts';
import type { Sandbox, SandboxLevel } from '../src/sandbox.ts';
import { seccompFilter, systemCalls } from '../src/seccomp.ts';
import { buildEscape, tryEscape } from './escape.ts';

const folder = mediaFolder();
/** Of each run. Patience alone: the system's tools load a hundred libraries and more. */
const PATIENCE_MS = 60_000;
const limits: RunLimits = { signal: noAbort, wallLimitMs: PATIENCE_MS };

const pathOf = (program: string): string =>
  execFileSync('/bin/sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();

/** On a machine without the starter that has these programs and no others. */
async function machineWith(programs: readonly string[]): Promise<MediaTools> {
  const path = folder.at(`bin-${programs.join('-')}`);
  await mkdir(path);
  for (const program of programs) await symlink(pathOf(program), `${path}/${program}`);
  return { ...systemTools, starterPath: undefined, launcher: [pathOf('env'), `PATH=${path}`] };
}

/** @param landlock number of its first system call; 4440, which no kernel has, on a kernel that has no Landlock */
async function buildStarter(landlock = 444): Promise<string> {
  const source = await readFile(join(import.meta.dirname, '../src/start.c'), 'utf8');
  expect(source).toContain('LANDLOCK_CREATE_RULESET 444\n');
  const path = folder.at(`start-${landlock}`);
  await writeFile(
    `${path}.c`,
    source.replace('LANDLOCK_CREATE_RULESET 444', `LANDLOCK_CREATE_RULESET ${landlock}`),
  );
  execFileSync('cc', ['-static', '-O1', '-o', path, `${path}.c`]);
  return path;
}

/** A sandbox of the level for tools that are linked with the system's libraries. */
const sandboxOf = (level: SandboxLevel): Sandbox => ({
  level,
  hasLimits: true,
  showsSystem: true,
});

describe('the sandbox that is taken', () => {
  const isScoped = Number.parseFloat(release()) > 6 && !/^6\.\d\.|^6\.1[01]\./.test(release());

  it('is Landlock where the starter is and the kernel has all of it, and shows the system to tools that need it', {
    tags: 'gcc',
  }, async () => {
    const tools = { ...systemTools, starterPath: await buildStarter() };
    expect(await detectSandbox(tools, PATIENCE_MS)).toEqual({
      level: isScoped ? 'landlock' : 'bubblewrap',
      hasLimits: true,
      showsSystem: true,
    });
  });

  it('is bubblewrap where the kernel has no Landlock', { tags: 'gcc' }, async () => {
    const tools = { ...systemTools, starterPath: await buildStarter(4440) };
    expect(await detectSandbox(tools, PATIENCE_MS)).toEqual({
      level: 'bubblewrap',
      hasLimits: true,
      showsSystem: true,
    });
    // A starter stays as long as its process does, which goes on to other tests.
    const stays = () =>
      descendants(process.pid).filter((pid) => programOf(pid) === 'old-start' && isAlive(pid));
    for (const pid of stays()) process.kill(pid);
    await until('it is gone', () => stays().length === 0);
  });

  it.each([
    [['prlimit', 'bwrap'], { level: 'bubblewrap', hasLimits: true }],
    [['prlimit'], { level: 'none', hasLimits: true }],
    // Without limits it would be none.
    [['bwrap'], { level: 'none', hasLimits: false }],
  ])('without the starter, with %j, is %j', async (programs, expected) => {
    expect(await detectSandbox(await machineWith(programs), PATIENCE_MS)).toMatchObject(expected);
  });

  it('has limits also at none', async () => {
    expect(await limitsAlone(systemTools, PATIENCE_MS)).toEqual({
      level: 'none',
      hasLimits: true,
      showsSystem: true,
    });
  });

  it('has limits that leave room for 32 outputs of one run, each with its tags', async () => {
    const input = await cachedMedia('tagged.flac', [
      '-f',
      'lavfi',
      '-i',
      'sine=d=0.5',
      '-metadata',
      'title=a',
    ]);
    const wanted = Array.from({ length: 32 }, (_, at) => ({
      path: folder.at(`${at}.opus`),
      request: { format: 'opus', start: at / 100 },
    }));
    const { files } = await extractSeveral(input, wanted);
    expect(files.map(({ codec }) => codec)).toEqual(wanted.map(() => 'opus'));
  });

  it('is not one that is installed and does not work', async () => {
    const tools = await machineWith(['prlimit', 'false']);
    await symlink(pathOf('false'), `${tools.launcher[1]?.slice('PATH='.length)}/bwrap`);
    expect(await detectSandbox(tools, PATIENCE_MS)).toMatchObject({ level: 'none' });
  });

  it('is the same for somebody who is not root', async () => {
    const becomeNobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
    const launcher = ['setpriv', ...(process.getuid?.() === 0 ? becomeNobody : []), '--'];
    const tools = { ...systemTools, starterPath: undefined, launcher };
    expect(await detectSandbox(tools, PATIENCE_MS)).toMatchObject({ level: 'bubblewrap' });
  });
});

describe('somebody who has taken ffprobe over', { tags: 'gcc' }, () => {
  const OUTPUT_BYTES = 1_000_000;
  const MOST_MIB = 512;
  let program: string;
  let starterPath: string;
  let network: Server;
  let local: Server;

  beforeAll(async () => {
    program = buildEscape(folder.path);
    starterPath = await buildStarter();
    await writeFile(folder.at('secret-key'), 'of the service');
    network = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
    local = createServer((socket) => socket.end()).listen(folder.at('redis.sock'));
    await Promise.all([once(network, 'listening'), once(local, 'listening')]);
  });
  afterAll(() => {
    network.close();
    local.close();
  });

  const tryAll = (sandbox: Sandbox) =>
    tryEscape(
      { ...bareTools, starterPath, sandbox },
      program,
      {
        output: folder.at(`output-${sandbox.level}`),
        secret: folder.at('secret-key'),
        socket: folder.at('redis.sock'),
        port: (network.address() as AddressInfo).port,
      },
      OUTPUT_BYTES,
    );

  it.each<[SandboxLevel, boolean]>([
    ['bubblewrap', false],
    // Tools that need the system's libraries see more.
    ['bubblewrap', true],
    ['landlock', true],
  ])(
    'has nothing but its own memory and its output: %s, showing the system: %s',
    async (level, showsSystem) => {
      const had = await tryAll({ ...sandboxOf(level), showsSystem });
      const { 'output-bytes': written = 0, 'memory-mib': memory = 0, ...rest } = had;
      expect(Object.keys(rest).length).toBeGreaterThan(25);
      expect(Object.entries(rest).filter(([, amount]) => amount > 0)).toEqual([]);
      expect(written).toBeGreaterThan(OUTPUT_BYTES - 4096);
      expect((await stat(folder.at(`output-${level}`))).size).toBe(OUTPUT_BYTES);
      expect(memory).toBeGreaterThan(300);
      expect(memory).toBeLessThanOrEqual(MOST_MIB);
    },
  );

  it('has all of it without one: the attempts are real', async () => {
    const had = await tryAll(sandboxOf('none'));
    expect(had).toMatchObject({
      keyctl: 1,
      unshare: 1,
      children: 8,
      memfd: 1,
      'shared-memory-mib': 640,
      // In five folders, of which one takes root.
      'other-files': process.getuid?.() === 0 ? 40 : 32,
      file: 1,
      environment: 1,
      // Root's processes with capabilities are closed to one without.
      'environment-of-the-parent': process.getuid?.() === 0 ? 0 : 1,
      socket: 1,
      network: 1,
      kill: expect.any(Number),
    });
    expect(had.kill).toBeGreaterThan(0);
  });
});

describe('the list of system calls', () => {
  const header = {
    x64: '/usr/include/x86_64-linux-gnu/asm/unistd_64.h',
    arm64: '/usr/include/asm-generic/unistd.h',
  };

  it.runIf(existsSync(header.x64)).each(['x64', 'arm64'] as const)(
    'has the numbers of the kernel: %s',
    async (arch) => {
      const text = await readFile(header[arch], 'utf8');
      const wrong = Object.entries(systemCalls).filter(([name, numbers]) => {
        const given = numbers[arch === 'x64' ? 0 : 1];
        // Where a number is that of a call with wide offsets the header names both.
        const names = [name, name.replace('newfstatat', 'fstatat'), name.replace('64', '')];
        const found = names
          .map((each) => new RegExp(`^#define __NR(?:3264)?_${each}\\s+(\\d+)`, 'm').exec(text)?.[1])
          .find((each) => each !== undefined);
        return given !== undefined && Number(found) !== given;
      });
      expect(wrong).toEqual([]);
    },
  );

  it('is none for other machines', () => {
    expect(() => seccompFilter('riscv64')).toThrow('there is no list of system calls for riscv64');
  });
});

describe('a run over its limit', () => {
  const tools: MediaTools = { ...systemTools, sandbox: sandboxOf('none') };
  const sound = (...output: string[]) => ['-f', 'lavfi', '-i', 'anoisesrc=r=192000', ...output];

  it('of memory does not even load', async () => {
    const version = (maxMemoryBytes?: number) =>
      runFfprobe(tools, ['-version'], {
        ...limits,
        maxStdoutBytes: 100_000,
        ...(maxMemoryBytes === undefined ? {} : { maxMemoryBytes }),
      });
    await expect(version(8 * 1024 ** 2)).rejects.toMatchObject({ name: 'ToolFailure' });
    await expect(version()).resolves.toBeDefined();
  });

  it('of processor time ends by a signal that ffmpeg names', async () => {
    await expect(
      runFfmpeg(tools, sound('-f', 'null', '-'), { ...limits, maxCpuSeconds: 1 }),
    ).rejects.toMatchObject({ stderr: expect.stringContaining('received signal 24') });
  });

  it('of a file’s size ends by a signal, which a sandbox tells too', async () => {
    const output = folder.at('large.wav');
    const run = (level: SandboxLevel) =>
      runFfmpeg({ ...tools, sandbox: sandboxOf(level) }, sound('-t', '60', output), {
        ...limits,
        access: { reads: [], writes: [output] },
        maxFileBytes: 1_000_000,
      });
    for (const level of ['none', 'bubblewrap', 'landlock'] as const) {
      await expect(run(level)).rejects.toMatchObject({ ending: { kind: 'signal', signal: 'SIGXFSZ' } });
    }
  });
});
