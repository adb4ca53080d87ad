/** What a tool uses is told while it runs, with and without a starter, and it can be lowered. */
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { getPriority } from 'node:os';
import { systemTools } from 'soundpost-testing/media-tools';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { runFfmpeg } from '../src/run.ts';

const folder = mediaFolder();

it.each([
  ['with a starter', systemTools.starterPath],
  ['without one', undefined],
])(
  'a run is metered each second, and at nice 19 as soon as the meter says so, %s',
  async (_, starterPath) => {
    const file = folder.at(`child-${starterPath === undefined}`);
    // As in a sandbox, the parent waits and its child works.
    const lines = ['#!/bin/sh', `sh -c 'echo $$ > ${file}.new; mv ${file}.new ${file}; while :; do :; done'`];
    await writeFile(folder.at('busy'), lines.join('\n'), { mode: 0o755 });
    const ending = new AbortController();
    const used: number[] = [];
    const priorities: number[] = [];
    let isLow = false;
    let told = 0;
    const tools = {
      ...systemTools,
      starterPath,
      ffmpegPath: folder.at('busy'),
      watch: () => (_ending: string, seconds: number) => {
        told = seconds;
      },
      meter(seconds: number) {
        used.push(seconds);
        // The last call comes when the run has ended.
        if (!ending.signal.aborted && existsSync(file)) {
          priorities.push(getPriority(Number(readFileSync(file, 'latin1'))));
        }
        if (priorities.includes(19)) ending.abort(new Error('enough'));
        isLow ||= used.length > 2;
        return isLow;
      },
    };
    const run = runFfmpeg(tools, [], { signal: ending.signal, wallLimitMs: 60_000 });
    await expect(run).rejects.toThrow('enough');
    expect(used[0]).toBe(0);
    expect(Math.max(...used.slice(1))).toBeGreaterThan(0);
    expect(used.reduce((sum, seconds) => sum + seconds, 0)).toBeCloseTo(told, 6);
    expect(priorities[0]).toBe(getPriority());
  },
);
