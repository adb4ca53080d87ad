/** Which command ends a child with its parent, and that ffmpeg works under both, in the sandbox as outside of it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dieWithParent } from 'soundpost-base/launcher';
import { systemTools } from 'soundpost-testing/media-tools';
import { descendants, isAlive, programOf, startedFromNow } from 'soundpost-testing/processes';
import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { detectSandbox } from '../src/abilities.ts';
import { type MediaTools, runFfmpeg, runFfprobe } from '../src/run.ts';

const noAbort = new AbortController().signal;
const ENDLESS = ['-re', '-f', 'lavfi', '-i', 'anullsrc', '-f', 'null', '-'];
const limits = { signal: noAbort, wallLimitMs: 20_000 };

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soundpost-launcher-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

it('is setpriv where that is on the search path, a shell elsewhere', () => {
  expect(dieWithParent('KILL', process.env.PATH ?? '')).toEqual(['setpriv', '--pdeathsig', 'KILL', '--']);
  expect(dieWithParent('KILL', folder)[0]).toBe('/bin/sh');
});

const bySetpriv = {
  ...systemTools,
  starterPath: undefined,
  launcher: dieWithParent('KILL', process.env.PATH ?? ''),
};
const byShell = { ...bySetpriv, launcher: dieWithParent('KILL', '') };
const sandbox = await detectSandbox(bySetpriv);

const isRoot = process.getuid?.() === 0;
const NONE = '0'.repeat(16);
const NO_CAPABILITIES = { CapInh: NONE, CapPrm: NONE, CapEff: NONE, CapBnd: NONE, CapAmb: NONE };
const capabilitiesOf = (pid: number | undefined): Record<string, string> =>
  Object.fromEntries(
    readFileSync(`/proc/${pid}/status`, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('Cap'))
      .map((line) => line.split(':\t')),
  );

describe.each<[string, MediaTools]>([
  [`setpriv, confined by ${sandbox.level}`, { ...bySetpriv, sandbox }],
  ['setpriv, not confined', bySetpriv],
  ['the shell', byShell],
  [`a process of Node, confined by ${sandbox.level}`, { ...bySetpriv, startsApart: true, sandbox }],
  ['a process of Node, by the shell', { ...byShell, startsApart: true }],
  ['the starter, not confined', systemTools],
  ['the starter, confined by bubblewrap', { ...systemTools, sandbox: { ...sandbox, level: 'bubblewrap' } }],
  ['the starter, confined by landlock', { ...systemTools, sandbox: { ...sandbox, level: 'landlock' } }],
])('ffmpeg under %s', (_name, tools) => {
  it('runs to its end; its progress, its statistics and ffprobe’s output arrive', async () => {
    const path = join(folder, 'silence.wav');
    const seen: (number | undefined)[] = [];
    const result = await runFfmpeg(tools, ['-f', 'lavfi', '-t', '2', '-i', 'anullsrc', '-y', path], {
      ...limits,
      access: { reads: [], writes: [path] },
      maxFileBytes: 1_000_000,
      onProgress: ({ outSeconds }) => seen.push(outSeconds),
    });
    expect(seen.at(-1)).toBeCloseTo(2, 1);
    expect(result.stderr).toContain('88200 samples');
    const shown = ['-v', 'error', '-show_entries', 'format=duration', '-of', 'csv=p=0'];
    const { stdout } = await runFfprobe(tools, [...shown, path], {
      ...limits,
      access: { reads: [path], writes: [] },
      maxStdoutBytes: 1000,
    });
    expect(Number(stdout)).toBe(2);
  });

  it('fails with ffmpeg’s exit code', async () => {
    await expect(
      runFfmpeg(tools, ['-i', 'file:/nonexistent', '-f', 'null', '-'], limits),
    ).rejects.toMatchObject({
      ending: { kind: 'exit', code: 1 },
    });
  });

  it('ends with an abort and leaves no process', async () => {
    const abort = new AbortController();
    const begun = Promise.withResolvers<void>();
    const started = startedFromNow();
    const run = runFfmpeg(tools, ENDLESS, {
      ...limits,
      signal: abort.signal,
      onProgress: () => begun.resolve(),
    });
    await begun.promise;
    const ffmpeg = started().find((pid) => programOf(pid) === 'ffmpeg');
    // The list of system calls alone would keep it from the network as well, and landlock has nothing besides.
    const isApart = readlinkSync(`/proc/${ffmpeg}/ns/net`) !== readlinkSync('/proc/self/ns/net');
    expect(isApart).toBe(tools.sandbox?.level === 'bubblewrap');
    // Also where these tests are root's. Without setpriv and the starter nothing drops them.
    if (isRoot && tools.launcher !== byShell.launcher)
      expect(capabilitiesOf(ffmpeg)).toEqual(NO_CAPABILITIES);
    abort.abort(new Error('cancelled'));
    await expect(run).rejects.toThrow('cancelled');
    await until('no process is left', () => started().length === 0);
  });

  it('ends when its parent is killed', async () => {
    const runner = join(folder, 'runner.ts');
    await writeFile(
      runner,
      `import { runFfmpeg } from ${JSON.stringify(join(import.meta.dirname, '../src/run.ts'))};
       await runFfmpeg(${JSON.stringify(tools)}, ${JSON.stringify(ENDLESS)}, {
         signal: new AbortController().signal, wallLimitMs: 60_000,
         onProgress: () => process.stdout.write('running\\n'),
       });`,
    );
    const parent = spawn(process.execPath, [runner], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(parent.stdout, 'data');
    const started = descendants(parent.pid ?? 0);
    expect(started.map(programOf)).toContain('ffmpeg');
    parent.kill('SIGKILL');
    await until('no process is left', () => !started.some(isAlive));
  });
});
