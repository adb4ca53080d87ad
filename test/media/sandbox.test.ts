/** Which sandbox is taken, what is out of reach in it, and where its limits are. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { detectSandbox } from '../../src/media/detect-sandbox.ts';
import { type MediaTools, type RunLimits, runFfmpeg, runFfprobe } from '../../src/media/run.ts';
import type { SandboxLevel } from '../../src/media/sandbox.ts';
import { systemTools } from '../media-tools.ts';
import { bareTools, noAbort } from './extracting.ts';
import { mediaFolder } from './sources.ts';

const folder = mediaFolder();
const limits: RunLimits = { signal: noAbort, wallLimitMs: 20_000 };

const pathOf = (program: string): string =>
  execFileSync('/bin/sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();

/** On a machine that has these programs and no others. */
async function machineWith(...programs: readonly string[]): Promise<MediaTools> {
  const path = folder.at(`bin-${programs.join('-')}`);
  await mkdir(path);
  for (const program of programs) await symlink(pathOf(program), `${path}/${program}`);
  return { ...bareTools, ffprobePath: pathOf('ffprobe'), launcher: [pathOf('env'), `PATH=${path}`] };
}

describe('the sandbox that is taken', () => {
  it('is bubblewrap where that works, with limits', async () => {
    expect(await detectSandbox(bareTools)).toEqual({ level: 'bubblewrap', hasLimits: true });
  });

  it.each([
    [['prlimit', 'bwrap', 'unshare'], { level: 'bubblewrap', hasLimits: true }],
    [['bwrap'], { level: 'bubblewrap', hasLimits: false }],
    [['prlimit', 'unshare'], { level: 'namespaces', hasLimits: true }],
    [['unshare'], { level: 'namespaces', hasLimits: false }],
    [['prlimit'], { level: 'none', hasLimits: true }],
    [['true'], { level: 'none', hasLimits: false }],
  ])('with %j is %j', async (programs, expected) => {
    expect(await detectSandbox(await machineWith(...programs))).toEqual(expected);
  });

  it('is not one that is installed and does not work', async () => {
    const tools = await machineWith('prlimit', 'unshare', 'false');
    await symlink(pathOf('false'), `${tools.launcher[1]?.slice('PATH='.length)}/bwrap`);
    expect(await detectSandbox(tools)).toEqual({ level: 'namespaces', hasLimits: true });
  });

  it('is the same for somebody who is not root', async () => {
    const becomeNobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
    const launcher = ['setpriv', ...(process.getuid?.() === 0 ? becomeNobody : []), '--'];
    expect(await detectSandbox({ ...bareTools, launcher })).toMatchObject({ level: 'bubblewrap' });
  });
});

describe('in the sandbox', () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.end('from outside');
  });
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await mkdir(folder.at('job'));
    await writeFile(folder.at('canary'), 'from the canary');
    await writeFile(folder.at('job/input'), 'the input itself');
  });
  afterAll(() => {
    server.close();
  });

  /** What a shell script finds that runs in ffprobe's place: what somebody could do who has taken ffprobe over. */
  async function find(level: SandboxLevel, script: string): Promise<string> {
    const tool = folder.at('job/tool');
    await writeFile(tool, `#!/bin/bash\n${script}\n`, { mode: 0o755 });
    const tools: MediaTools = { ...bareTools, ffprobePath: tool, sandbox: { level, hasLimits: true } };
    const { stdout } = await runFfprobe(tools, [], {
      ...limits,
      access: { reads: [folder.at('job/input'), tool], writes: [folder.at('job')] },
      maxFileBytes: 1000,
      maxStdoutBytes: 100_000,
    });
    return stdout.trim();
  }
  const port = (): number => (server.address() as AddressInfo).port;
  const request = (): string =>
    `exec 3<>/dev/tcp/127.0.0.1/${port()} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3; true`;

  it('no server is in reach, in either kind', async () => {
    expect(await find('bubblewrap', request())).toBe('');
    expect(await find('namespaces', request())).toBe('');
    expect(requests).toBe(0);
    expect(await find('none', request())).toContain('from outside');
  });

  it('no other file is in sight', async () => {
    const look = `cat ${folder.at('canary')} /etc/passwd /proc/self/environ; true`;
    expect(await find('bubblewrap', look)).toBe('');
    expect(await find('none', look)).toContain('from the canary');
    expect(await find('bubblewrap', 'echo /*')).toMatch(/^\/bin \/dev \/etc (\/lib\S* )*\/tmp \/usr$/);
  });

  it('the input can be read and not written, and the folder for outputs written', async () => {
    const input = folder.at('job/input');
    expect(await find('bubblewrap', `cat ${input}; echo x > ${input} || echo refused`)).toBe(
      'the input itselfrefused',
    );
    expect(
      await find('bubblewrap', `echo made > ${folder.at('job/made')}; cat ${folder.at('job/made')}`),
    ).toBe('made');
    const elsewhere = `for place in / /usr /etc /dev /tmp ${folder.path}; do touch $place/x && echo $place; done; true`;
    expect(await find('bubblewrap', elsewhere)).toBe('');
  });

  it('no other process is there, and no capability', async () => {
    expect(await find('bubblewrap', 'kill -0 -1 2>/dev/null && echo others; true')).toBe('');
    expect(
      await find('bubblewrap', 'chown 1 "$0" 2>/dev/null || mount -t tmpfs x /tmp 2>/dev/null || echo none'),
    ).toBe('none');
  });
});

describe('a run over its limit', () => {
  const tools: MediaTools = { ...systemTools, sandbox: { level: 'none', hasLimits: true } };
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
      runFfmpeg({ ...tools, sandbox: { level, hasLimits: true } }, sound('-t', '60', output), {
        ...limits,
        access: { reads: [], writes: [folder.path] },
        maxFileBytes: 1_000_000,
      });
    for (const level of ['none', 'bubblewrap'] as const) {
      await expect(run(level)).rejects.toMatchObject({ ending: { kind: 'signal', signal: 'SIGXFSZ' } });
    }
  });
});
