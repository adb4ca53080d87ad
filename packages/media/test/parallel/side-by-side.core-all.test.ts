/** An output and its voice message, each in a run of its own over an idle core: the same files as one decode makes. */
// @module-tag quick-ffmpeg
import { copyFile, readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { OutputRequest } from 'soundpost-contract/output-request';
import { currentRun, rowsOfRun } from 'soundpost-testing/by-run';
import {
  extractOne,
  noAbort,
  type OneExtraction,
  type OneOptions,
  startedBy,
  tools,
} from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { realTimeTools, stoppingTools } from 'soundpost-testing/media-tools';
import { isStopped, processesOver } from 'soundpost-testing/processes';
import { mediaFolder } from 'soundpost-testing/sources';
import { until } from 'soundpost-testing/until';
import { beforeAll, expect, it } from 'vitest';
import { planOutput, planVoiceRendition } from '../../src/plan.ts';
import { probe } from '../../src/probe.ts';
import { cores } from './cores.ts';

const folder = mediaFolder();

/** A copy of its own, so that its runs can be told from those of other tests. */
beforeAll(async () => {
  const sound = "aevalsrc='0.3*sin(440*PI*t)*exp(-3*mod(t,0.5))|0.3*sin(660*PI*t)':s=44100";
  const args = ['-f', 'lavfi', '-t', '26', '-i', sound, '-c:a', 'aac', '-metadata', 'title=Étude'];
  await copyFile(await cachedMedia('chords.mp4', args), folder.at('chords.mp4'));
});

/** @param name what its two files begin with */
async function both(name: string, request: object, options: Partial<OneOptions>): Promise<OneExtraction> {
  const input = folder.at('chords.mp4');
  const probed = await probe(tools, input, { signal: noAbort });
  const output = OutputRequest.parse(request);
  return extractOne({
    ...{ tools, input, probe: probed, signal: noAbort, maxAudioSeconds: 3600 },
    ...{ plan: planOutput(output, probed), outputPath: folder.at(`${name}.out`) },
    voice: { plan: planVoiceRendition(output, probed), path: folder.at(`${name}.ogg`) },
    ...options,
  });
}

/** ffmpeg itself, not the launchers before it: which of the outputs each run writes. */
function running(name: string): string[] {
  const ffmpegs = processesOver(folder.path).filter(({ words }) => basename(words[0] ?? '') === 'ffmpeg');
  return ffmpegs.map(({ words }) => writtenBy(words, name));
}

/** Runs that stand still before they begin, and what each writes. */
function stopped(name: string): { readonly pid: number; readonly writes: string }[] {
  const runs = processesOver(folder.path).filter(({ pid }) => isStopped(pid));
  return runs.map(({ pid, words }) => ({ pid, writes: writtenBy(words, name) }));
}

const writtenBy = (words: readonly string[], name: string): string =>
  ['out', 'ogg'].filter((end) => words.some((word) => word.endsWith(`${name}.${end}`))).join(' and ');

const leftovers = async (name: string): Promise<string[]> =>
  (await readdir(folder.path)).filter((file) => file.startsWith('extract-') || file.startsWith(`${name}.`));

it.each(
  rowsOfRun(
    [
      { format: 'mp3' },
      { format: 'mp3', start: 2, end: 20 },
      { format: 'm4a', copy: 'never' },
      { format: 'mp3', normalize: true },
    ],
    1,
  ),
)('makes the same files of %o', async (request) => {
  const { held, takeIdle } = cores(2);
  const one = await both('one', request, {});
  const fractions: number[] = [];
  const onProgress = (fraction: number) => fractions.push(fraction);
  const apart = await both('apart', request, { parallel: { takeIdle }, onProgress });
  expect(fractions.at(-1)).toBe(1);
  expect(fractions).toEqual(fractions.toSorted((one, other) => one - other));
  expect(held).toEqual({ asked: 2, now: 0 });
  for (const end of ['out', 'ogg']) {
    expect((await readFile(folder.at(`apart.${end}`))).equals(await readFile(folder.at(`one.${end}`)))).toBe(
      true,
    );
  }
  const pathless = ({ output, voice, ...rest }: OneExtraction) => ({
    ...rest,
    files: [output, voice].map((file) => ({ ...file, path: null })),
  });
  expect(pathless(apart)).toEqual(pathless(one));
});

it.runIf(currentRun === 'core')(
  'runs both at the same time, and one decode for both where no core is idle',
  async () => {
    const whatRuns = async (name: string, count: number): Promise<string[]> => {
      const runs = await until(`${count} run`, () => {
        const found = stopped(name);
        return found.length >= count && found;
      });
      for (const { pid } of runs) process.kill(pid, 'SIGCONT');
      return runs.map(({ writes }) => writes).toSorted();
    };
    const apart = both('apart', { format: 'mp3' }, { parallel: cores(2), tools: stoppingTools });
    expect(await whatRuns('apart', 2)).toEqual(['ogg', 'out']);
    await apart;
    const { held, takeIdle } = cores(1);
    const one = both('one', { format: 'mp3' }, { parallel: { takeIdle }, tools: stoppingTools });
    expect(await whatRuns('one', 1)).toEqual(['out and ogg']);
    await one;
    expect(held).toEqual({ asked: 2, now: 0 });
  },
);

it.runIf(currentRun === 'core')('takes no core beside a copy, which needs none', async () => {
  const { held, takeIdle } = cores(2);
  const { output } = await both('copied', { format: 'm4a' }, { parallel: { takeIdle } });
  expect([output.copied, held.asked]).toEqual([true, 0]);
});

it.runIf(currentRun === 'core')('that is cancelled leaves no process and no file', async () => {
  const { held, takeIdle } = cores(2);
  const abort = new AbortController();
  const reason = new Error('cancelled');
  const made = both(
    'end',
    { format: 'mp3' },
    { parallel: { takeIdle }, signal: abort.signal, tools: realTimeTools },
  );
  const cancelled = expect(made).rejects.toBe(reason);
  await until('both run', () => running('end').length === 2);
  abort.abort(reason);
  await cancelled;
  expect(running('end')).toEqual([]);
  expect(await leftovers('end')).toEqual([]);
  expect(held.now).toBe(0);
});

it.runIf(currentRun === 'core')('one of whose outputs fails ends the other and fails with it', async () => {
  const { held, takeIdle } = cores(2);
  const breaking =
    'for word; do case $word in *end.ogg) echo "Error while decoding: planted" >&2; exit 3;; *end.out) exec sleep 600;; esac; done; exec "$@"';
  const broken = startedBy(['/bin/sh', '-c', breaking, 'sh', ...tools.launcher]);
  await expect(
    both('end', { format: 'mp3' }, { parallel: { takeIdle }, tools: broken }),
  ).rejects.toMatchObject({ code: 'EXTRACTION_FAILED' });
  expect(await leftovers('end')).toEqual([]);
  expect(held.now).toBe(0);
});
