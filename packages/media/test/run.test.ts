/** How a run of ffmpeg ends, and that nothing of it is left. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { noAbort } from 'soundpost-testing/extracting';
import { systemTools as tools } from 'soundpost-testing/media-tools';
import { mediaFolder } from 'soundpost-testing/sources';
import { describe, expect, it, vi } from 'vitest';
import { ToolFailure } from '../src/failure.ts';
import { type RunLimits, requireRegularFile, runFfmpeg, runFfprobe } from '../src/run.ts';

const folder = mediaFolder();

/** Sound without an end, made at the speed of a clock, so that it runs until somebody ends it. */
const ENDLESS = ['-re', '-f', 'lavfi', '-i', 'anullsrc', '-f', 'null', '-'];
const SHORT = ['-f', 'lavfi', '-t', '2', '-i', 'anullsrc', '-f', 'null', '-'];

const MKFIFO = '/usr/bin/mkfifo';

const limits: RunLimits = { signal: noAbort, wallLimitMs: 20_000 };

/** A tool that is a shell script of ours, to misbehave as ffmpeg would. */
async function script(name: string, ...lines: string[]) {
  await writeFile(folder.at(name), ['#!/bin/sh', ...lines].join('\n'), { mode: 0o755 });
  return { ...tools, ffmpegPath: folder.at(name) };
}

function isAlive(pid: number): boolean {
  try {
    // A zombie still has its id.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 60_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error('it did not come to that within 60 s');
    await delay(10);
  }
}

const failure = (ending: object) =>
  expect.objectContaining({ name: 'ToolFailure', ending: expect.objectContaining(ending) });

it('tells what it used: processor time when it ended well, time by the clock when it did not', async () => {
  const used: (readonly [ending: string, seconds: number])[] = [];
  const watched = {
    ...tools,
    watch: () => (ending: string, seconds: number) => used.push([ending, seconds]),
  };
  await runFfmpeg(watched, ['-re', '-f', 'lavfi', '-t', '2', '-i', 'anullsrc', '-f', 'null', '-'], limits);
  const ending = new AbortController();
  let heardMs = 0;
  const aborted = runFfmpeg(watched, ENDLESS, {
    ...{ ...limits, signal: ending.signal },
    onProgress: ({ outSeconds = 0 }) => {
      if (outSeconds < 2 || ending.signal.aborted) return;
      heardMs = performance.now();
      ending.abort(new Error('enough'));
    },
  });
  const begunMs = performance.now();
  await expect(aborted).rejects.toThrow('enough');
  const [[, processor] = ['', 0], [, clock] = ['', 0]] = used;
  expect(used.map(([how]) => how)).toEqual(['completed', 'aborted']);
  // It waits for the clock for nearly two seconds.
  expect(processor).toBeGreaterThan(0);
  expect(processor).toBeLessThan(1);
  expect(clock).toBeGreaterThan(1);
  expect(clock).toBeGreaterThanOrEqual((heardMs - begunMs) / 1000);
});

describe('an ending', () => {
  it.each([
    ['30 s', 'printf "progress=continue\\n" >&4', 30_000],
    ['a twentieth of its limit besides, as long as no output has begun', ':', 60_000],
  ])('of a run without progress for %s is stalled', async (_, reports, afterMs) => {
    const silent = await script(
      `silent-${afterMs}`,
      reports,
      `touch ${folder.at(`begun-${afterMs}`)}`,
      'exec sleep 600',
    );
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'performance'] });
    try {
      const ended = runFfmpeg(silent, ['-i', 'a'], { ...limits, wallLimitMs: 600_000 });
      ended.catch(() => undefined);
      while (!existsSync(folder.at(`begun-${afterMs}`))) await delay(10);
      for (let passed = 0; passed <= afterMs; passed += 1000) await vi.advanceTimersByTimeAsync(1000);
      await expect(ended).rejects.toEqual(failure({ kind: 'stalled', afterMs }));
    } finally {
      vi.useRealTimers();
    }
  });

  it('of a good run carries the statistics and the last progress', async () => {
    const seen: (number | undefined)[] = [];
    const { stderr, lastProgress } = await runFfmpeg(tools, SHORT, {
      ...limits,
      onProgress: ({ outSeconds }) => seen.push(outSeconds),
    });
    expect(stderr).toContain('88200 samples');
    expect(lastProgress.outSeconds).toBeCloseTo(2, 3);
    expect(seen.at(-1)).toBe(lastProgress.outSeconds);
  });

  it('by an exit code names it', async () => {
    await expect(runFfmpeg(tools, ['-i', 'file:/nonexistent', '-f', 'null', '-'], limits)).rejects.toEqual(
      failure({ kind: 'exit', code: 1 }),
    );
  });

  it('on a full disk is a failure, also where ffmpeg exits with 0', async () => {
    const args = ['-f', 'lavfi', '-t', '0.1', '-i', 'anullsrc', '-f', 'wav', '/dev/full'];
    const error = await runFfmpeg(tools, args, limits).catch((thrown: unknown) => thrown);
    expect(error).toEqual(failure({ kind: 'exit', code: 0 }));
    expect((error as ToolFailure).stderr).toContain('No space left on device');
  });

  it('by a signal from outside names it', async () => {
    const killed = await script('killed', 'kill -9 $$');
    await expect(runFfmpeg(killed, [], limits)).rejects.toEqual(
      failure({ kind: 'signal', signal: 'SIGKILL' }),
    );
  });

  it('by the wall limit', async () => {
    await expect(runFfmpeg(tools, ENDLESS, { ...limits, wallLimitMs: 300 })).rejects.toEqual(
      failure({ kind: 'wall-limit', afterMs: 300 }),
    );
  });

  it('that never began is an ordinary error', async () => {
    const missing = { ...tools, launcher: [], ffmpegPath: '/nonexistent/ffmpeg' };
    await expect(runFfmpeg(missing, SHORT, limits)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('keeps the end of what was written, at most 256 KiB', async () => {
    const talkative = await script(
      'talkative',
      'head -c 1000000 /dev/zero | tr "\\0" x >&2',
      'echo the end >&2',
      'exit 3',
    );
    const error = await runFfmpeg(talkative, [], limits).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ToolFailure);
    expect((error as ToolFailure).stderr).toHaveLength(256 * 1024);
    expect((error as ToolFailure).stderr.endsWith('the end\n')).toBe(true);
  });
});

describe('an abort', () => {
  const reason = new Error('cancelled');

  it('rejects with its reason and leaves no process of the group', async () => {
    const family = await script(
      'family',
      `sleep 1000 & echo $! > ${folder.path}/child.pid`,
      'echo $$ > "$0.pid"',
      'wait',
    );
    const abort = new AbortController();
    const run = runFfmpeg(family, [], { ...limits, signal: abort.signal });
    await until(
      () =>
        existsSync(folder.at('family.pid')) && readFileSync(folder.at('family.pid'), 'utf8').endsWith('\n'),
    );
    const pids = ['child.pid', 'family.pid'].map((name) => Number(readFileSync(folder.at(name), 'utf8')));
    expect(pids.map(isAlive)).toEqual([true, true]);
    abort.abort(reason);
    await expect(run).rejects.toBe(reason);
    await until(() => !pids.some(isAlive));
  });

  it('goes on to SIGKILL where SIGTERM is ignored', async () => {
    const deaf = await script('deaf', "trap '' TERM", 'echo $$ > "$0.pid"', 'while :; do sleep 0.1; done');
    const abort = new AbortController();
    const run = runFfmpeg(deaf, [], { ...limits, signal: abort.signal });
    await until(
      () => existsSync(folder.at('deaf.pid')) && readFileSync(folder.at('deaf.pid'), 'utf8').endsWith('\n'),
    );
    const pid = Number(readFileSync(folder.at('deaf.pid'), 'utf8'));
    abort.abort(reason);
    await expect(run).rejects.toBe(reason);
    await until(() => !isAlive(pid));
  });

  it('beforehand starts nothing', async () => {
    const marker = await script('marker', 'touch "$0.started"');
    await expect(runFfmpeg(marker, [], { ...limits, signal: AbortSignal.abort(reason) })).rejects.toBe(
      reason,
    );
    expect(existsSync(folder.at('marker.started'))).toBe(false);
  });

  it('is the reason also when another one comes before the end', async () => {
    // It says more than it may between SIGTERM and its end.
    const lines = ["trap 'echo too much; exit' TERM", 'echo $$ > "$0.pid"', 'while :; do sleep 0.1; done'];
    const { ffmpegPath } = await script('talking', ...lines);
    const abort = new AbortController();
    const said = { ...limits, signal: abort.signal, maxStdoutBytes: 1 };
    const run = runFfprobe({ ...tools, ffprobePath: ffmpegPath }, [], said);
    await until(() => existsSync(folder.at('talking.pid')));
    abort.abort(reason);
    await expect(run).rejects.toBe(reason);
  });
});

it('gives the tool none of its own environment', async () => {
  const nosy = await script('nosy', 'env > "$0.env"');
  process.env.FFREPORT = 'file=/tmp/report';
  try {
    await runFfmpeg(nosy, [], limits);
  } finally {
    delete process.env.FFREPORT;
  }
  const names = readFileSync(folder.at('nosy.env'), 'utf8').match(/^\w+(?==)/gm);
  expect(names).not.toContain('FFREPORT');
  expect(names?.filter((name) => !['PATH', 'LANG', 'PWD', 'SHLVL', '_', 'OLDPWD'].includes(name))).toEqual(
    [],
  );
});

describe('an input', () => {
  it('that is no regular file is refused', async () => {
    await once(spawn(MKFIFO, [folder.at('fifo.mp4')]), 'exit');
    await writeFile(folder.at('real.mp4'), 'x');
    await symlink(folder.at('real.mp4'), folder.at('link.mp4'));
    for (const name of ['fifo.mp4', 'link.mp4', '.']) {
      await expect(requireRegularFile(folder.at(name))).rejects.toMatchObject({
        code: 'INVALID_VIDEO',
        details: 'not a regular file',
      });
    }
    await expect(requireRegularFile(folder.at('real.mp4'))).resolves.toEqual({ sizeBytes: 1 });
  });
});
