/** The programs that start the tools: what becomes of them when it dies, and that it takes many at a time. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { noAbort } from 'soundpost-testing/extracting';
import { systemTools } from 'soundpost-testing/media-tools';
import { descendants, isAlive, programOf } from 'soundpost-testing/processes';
import { mediaFolder } from 'soundpost-testing/sources';
import { until } from 'soundpost-testing/until';
import { describe, expect, it } from 'vitest';
import { type MediaTools, runFfmpeg, runFfprobe } from '../src/run.ts';

const folder = mediaFolder();
const limits = { signal: noAbort, wallLimitMs: 60_000 };
const ENDLESS = ['-re', '-f', 'lavfi', '-i', 'anullsrc', '-f', 'null', '-'];

const children = (name: RegExp): number[] =>
  descendants(process.pid).filter((pid) => name.test(`${programOf(pid)} ${argumentsOf(pid)}`));

const argumentsOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
};

const isBuilt = systemTools.starterPath !== undefined;

describe.each<[string, RegExp, MediaTools]>([
  ...(isBuilt ? [['that is built', /^soundpost-start/, systemTools] as [string, RegExp, MediaTools]] : []),
  ['of Node', /starter-process/, { ...systemTools, starterPath: undefined, startsApart: true }],
])('the starter %s', (_name, program, tools) => {
  it('is one for all runs, takes them along when it is killed, and is started again by the next one', async () => {
    const begun = Promise.withResolvers<void>();
    const runs = [0, 1].map(() =>
      runFfmpeg(tools, ENDLESS, { ...limits, onProgress: () => begun.resolve() }),
    );
    await begun.promise;
    await until('both run', () => children(/^ffmpeg/).length === 2);
    const running = children(/^ffmpeg/);
    const starters = children(program);
    expect(starters).toHaveLength(1);
    for (const pid of starters) process.kill(pid, 'SIGKILL');
    // As after any signal that was no limit of ours: whoever has the job tries again.
    for (const run of runs) {
      await expect(run).rejects.toMatchObject({ ending: { kind: 'signal', signal: 'SIGKILL' } });
    }
    await until('no tool is left', () => !running.some(isAlive));
    await expect(
      runFfprobe(tools, ['-version'], { ...limits, maxStdoutBytes: 100_000 }),
    ).resolves.toMatchObject({ stdout: expect.stringMatching(/^ffprobe version/) });
    expect(children(program)).not.toEqual(starters);
  });

  it('keeps what runs write at the same time apart, byte for byte', async () => {
    const lengths = Array.from({ length: 12 }, (_, nth) => 100_000 * (nth + 1) + nth);
    const read = async (length: number): Promise<Buffer> => {
      const chunks: Buffer[] = [];
      // In ffmpeg's place is a program that writes so many of one letter.
      const letter = String.fromCharCode(97 + (length % 26));
      const script = folder.at(`letters-${length}`);
      const text = `#!/bin/sh\nhead -c ${length} /dev/zero | tr '\\0' ${letter}\n`;
      await writeFile(script, text, { mode: 0o755 });
      await runFfmpeg({ ...tools, ffmpegPath: script }, [], {
        ...limits,
        onStdout: (chunk) => chunks.push(chunk),
      });
      return Buffer.concat(chunks);
    };
    const written = await Promise.all(lengths.map(read));
    expect(written.map((bytes) => bytes.length)).toEqual(lengths);
    for (const bytes of written) expect(new Set(bytes).size).toBe(1);
  });
});
