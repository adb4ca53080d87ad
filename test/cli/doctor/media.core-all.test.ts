/** What `doctor` says of ffmpeg: none, an old one, one that was built without what is needed, one that hangs; and of the sandbox. */
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { requirements } from 'soundpost-media/requirements';
import { currentRun } from 'soundpost-testing/by-run';
import { mediaTools } from 'soundpost-testing/media-tools';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { flawsFixedSince } from '../../../src/cli/doctor/ffmpeg-flaws.ts';
import { run } from '../../house/command.ts';
import { diagnose } from './doctor-run.ts';

const pathOf = (program: string): string =>
  execFileSync('/bin/sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-path-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A PATH with what a Debian without ffmpeg has, and these scripts as programs; what script/ffmpeg has built stays out of it. */
async function pathWith(
  name: string,
  scripts: Readonly<Record<string, string>> = {},
): Promise<{ PATH: string; FFMPEG_PATH: string }> {
  const path = join(folder, name);
  await mkdir(path);
  for (const program of ['sh', 'setpriv', 'prlimit', 'bwrap', 'unshare', 'redis-server', 'apt-get']) {
    await symlink(pathOf(program), join(path, program));
  }
  for (const [program, script] of Object.entries(scripts)) {
    await writeFile(join(path, program), `#!/bin/sh\n${script}\n`);
    await chmod(join(path, program), 0o755);
  }
  return { PATH: path, FFMPEG_PATH: 'ffmpeg' };
}

const INSTALL = /^(sudo )?apt-get update && (sudo )?apt-get install -y ffmpeg$/;

/** Answers as the real one, but for its version. */
const ofVersion = (tool: string, version: string): string =>
  `case "$*" in *-version*) echo '${tool} version ${version} Copyright (c) the FFmpeg developers';; *) exec ${pathOf(tool)} "$@";; esac`;

describe('a machine', () => {
  it.runIf(currentRun === 'core')(
    'with all that is needed is said to be fine, and nothing is left on it',
    async () => {
      const { code, verdict, of, left } = await diagnose();
      // It warns of a temporary folder in memory, which many systems have.
      const isInMemory = of('Disk').some(({ found }) => found.includes('is in memory'));
      // And of a system's ffmpeg that lacks fixes.
      const [, version = ''] = /^ffmpeg (\S+) /.exec(of('ffmpeg')[0]?.found ?? '') ?? [];
      const isFlawed = flawsFixedSince(version).length > 0;
      expect({ code, verdict }).toEqual({ code: 0, verdict: isInMemory || isFlawed ? 'warning' : 'ok' });
      expect(of('ffmpeg')).toEqual([
        isFlawed
          ? expect.objectContaining({ verdict: 'warning', command: 'script/ffmpeg' })
          : expect.objectContaining({ verdict: 'ok', found: expect.stringContaining(mediaTools.ffmpegPath) }),
      ]);
      expect(of('Sandbox')[0]?.found).toMatch(/\((landlock|bubblewrap)\), with limits/);
      expect(left).toEqual([]);
    },
  );

  it.runIf(currentRun === 'core')(
    'without ffmpeg and Redis is told what installs them, and `serve` says so of ffmpeg as well',
    async () => {
      const machine = await pathWith('none');
      const redis = join(machine.PATH, 'redis-server');
      await rm(redis);
      const { code, of, faults } = await diagnose(machine);
      await symlink(pathOf('redis-server'), redis);
      expect(code).toBe(1);
      expect(faults).toHaveLength(2);
      expect(faults).toContainEqual(expect.stringContaining('ffmpeg and ffprobe are not on the PATH'));
      expect(faults).toContainEqual(expect.stringContaining('redis-server is not on the PATH'));
      expect(of('ffmpeg')[0]?.command).toMatch(INSTALL);
      const main = resolve(import.meta.dirname, '../../../src/main.ts');
      const env = {
        ...machine,
        DATA_DIR: join(folder, 'data'),
        API_PORT: '0',
        GATEWAY_PORT: '0',
        LOG_LEVEL: 'silent',
      };
      const serve = await run(folder, process.execPath, [main, 'serve'], env);
      expect(serve.code).toBe(2);
      expect(serve.output).toMatch(/ffmpeg and ffprobe are not on the PATH.*soundpost doctor/);
    },
  );

  it.runIf(currentRun === 'all')('with old ones is told what brings newer ones', async () => {
    const machine = await pathWith('old', {
      ffmpeg: ofVersion('ffmpeg', '3.4.11-0ubuntu0.1'),
      ffprobe: ofVersion('ffprobe', '2.8.17'),
    });
    const { code, of, faults } = await diagnose(machine);
    expect(code).toBe(1);
    expect(faults).toEqual([
      'ffmpeg: ffmpeg 3.4.11-0ubuntu0.1 is too old: 5.1 or newer is needed',
      'ffmpeg: ffprobe 2.8.17 is too old: 5.1 or newer is needed',
    ]);
    expect(of('ffmpeg')[0]?.command).toMatch(INSTALL);
  });

  it.runIf(currentRun === 'all')('with one that lacks fixes is told of what, and what to do', async () => {
    const machine = await pathWith('flawed', {
      ffmpeg: ofVersion('ffmpeg', '7.1.3-0+deb13u1'),
      ffprobe: ofVersion('ffprobe', '7.1.3-0+deb13u1'),
    });
    const { code, of } = await diagnose(machine);
    expect(code).toBe(0);
    expect(of('ffmpeg')).toEqual([
      expect.objectContaining({
        verdict: 'warning',
        found: expect.stringMatching(
          /^ffmpeg 7\.1\.3-0\+deb13u1 has published flaws that a source can reach \(demuxer mpegts, .*\); ffmpeg 7\.1\.5 fixes them$/,
        ),
        remedy: expect.stringContaining('Debian 13'),
        command: 'script/ffmpeg',
      }),
    ]);
  });

  it.runIf(currentRun === 'all')('with an ffmpeg that lacks encoders and formats is told which', async () => {
    const lacking = `${pathOf('ffmpeg')} "$@" | sed -E '/ (libopus|libvorbis|alimiter|matroska,webm) /d; / (amr_?[nw]b|libopencore|gsm|libgsm|ilbc|qcelp|g72)/d'`;
    const machine = await pathWith('lacking', { ffmpeg: lacking, ffprobe: `exec ${pathOf('ffprobe')} "$@"` });
    const { code, of } = await diagnose(machine);
    expect(code).toBe(1);
    const lacks = of('ffmpeg').filter(({ found }) => !found.includes('published flaws'));
    expect(lacks.map(({ verdict, found }) => `${verdict} ${found}`)).toEqual([
      'fault this ffmpeg was built without: encoder libopus, encoder libvorbis, filter alimiter',
      'warning this ffmpeg cannot read some sources; it was built without: demuxer matroska, every decoder of telephone',
    ]);
  });

  it.runIf(currentRun === 'all')(
    'whose FFMPEG_PATH names nothing is told so, although one is on the PATH',
    async () => {
      const path = join(folder, 'gone/ffmpeg');
      const { code, faults } = await diagnose({ FFMPEG_PATH: path });
      expect(code).toBe(1);
      expect(faults).toEqual([
        `ffmpeg: FFMPEG_PATH: there is no ffmpeg with an ffprobe at ${path}: no job can run`,
      ]);
    },
  );

  it.runIf(currentRun === 'all')(
    'with an ffmpeg that hangs gets every other answer all the same',
    async () => {
      const hang = 'exec sleep 1000';
      const machine = await pathWith('hanging', { ffmpeg: hang, ffprobe: hang });
      await symlink(pathOf('sleep'), join(machine.PATH, 'sleep'));
      const { of, faults } = await diagnose(machine);
      expect(faults).toEqual([expect.stringMatching(/^ffmpeg: .*hanging\/ffmpeg or .* does not run/)]);
      expect(of('Sandbox')).toEqual([expect.objectContaining({ verdict: 'warning' })]);
      for (const check of ['Node', 'Redis', 'Disk', 'Ports', 'Clock', 'Configuration']) {
        expect(of(check)[0]?.verdict, check).toBe('ok');
      }
    },
  );

  it.runIf(currentRun === 'core')('without a sandbox is warned, or told that it will not start', async () => {
    const without = [
      ...['bwrap', '--dev-bind', '/', '/', '--die-with-parent'],
      ...['/usr/bin/bwrap', mediaTools.starterPath ?? '/usr/bin/bwrap'].flatMap((path) => [
        '--ro-bind',
        '/dev/null',
        path,
      ]),
      '--',
    ];
    const [auto, required] = await Promise.all([
      diagnose({ SANDBOX: 'auto' }, without),
      diagnose({ SANDBOX: 'required' }, without),
    ]);
    expect([auto.code, required.code]).toEqual([0, 1]);
    expect(auto.of('Sandbox')[0]).toMatchObject({
      verdict: 'warning',
      found: expect.stringContaining('ffmpeg runs without a sandbox'),
      command: expect.stringMatching(/apt-get install -y bubblewrap$/),
    });
    expect(required.faults).toEqual([
      expect.stringContaining('with SANDBOX=required the service does not start'),
    ]);
  });
});

describe.runIf(currentRun === 'core')('what ffmpeg is asked for', () => {
  it('is all that the code names', async () => {
    const root = resolve(import.meta.dirname, '../../../packages/media/src');
    const files = (await readdir(root, { recursive: true })).filter((path) => path.endsWith('.ts'));
    const code = (await Promise.all(files.map((path) => readFile(join(root, path), 'utf8')))).join('\n');
    const named = (pattern: RegExp): string[] => [...code.matchAll(pattern)].flatMap(([, name = '']) => name);
    const { muxers, demuxers, filters, encoders } = requirements();
    expect(muxers).toEqual(expect.arrayContaining(named(/\bmuxer: '(\w+)'/g)));
    expect(demuxers).toEqual(expect.arrayContaining(named(/\bdemuxer: '(\w+)'/g)));
    expect(encoders).toEqual(expect.arrayContaining(named(/'-c:a', '((?!copy)\w+)'/g)));
    const listed = execFileSync('ffmpeg', ['-hide_banner', '-filters'], { encoding: 'utf8' });
    const known = new Set([...listed.matchAll(/^ [A-Z.]{3} (\S+) +A+->/gm)].map(([, name = '']) => name));
    const used = named(/\b([a-z0-9]+)=[\w$]/g).filter((name) => known.has(name));
    expect(filters).toEqual(expect.arrayContaining(used));
    expect(used.length).toBeGreaterThan(5);
  });
});
