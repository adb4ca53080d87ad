/** Whose fault it is that ffmpeg did not end well: what this machine did is worth another try, what a limit of ours ended is not (decisions A7). */
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { OutputRequest } from 'soundpost-contract/output-request';
import { extract, extractOne, noAbort, startedBy, tools } from 'soundpost-testing/extracting';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { processesOver, programOf, signalIfThere } from 'soundpost-testing/processes';
import { mediaFolder } from 'soundpost-testing/sources';
import { beforeAll, expect, it, vi } from 'vitest';
import { planOutput } from '../src/plan.ts';
import { type Probe, probe } from '../src/probe.ts';
import type { MediaTools } from '../src/run.ts';

const folder = mediaFolder();
/** Long enough for ffmpeg to be at work when it tells how far it is. */
const input = () => folder.at('long.wav');
let probed: Probe;
beforeAll(async () => {
  const noise = ['-f', 'lavfi', '-i', 'anoisesrc=d=600:r=8000'];
  await copyFile(await cachedMedia('long.wav', noise), input());
  probed = await probe(tools, input(), { signal: noAbort });
});

function failureOf(by: MediaTools, onProgress: () => void = () => undefined): Promise<unknown> {
  const plan = planOutput(OutputRequest.parse({ format: 'aac', sampleRate: 48_000 }), probed);
  return extractOne({
    ...{ tools: by, input: input(), outputPath: folder.at('ended.aac'), probe: probed, plan, onProgress },
    ...{ signal: noAbort, maxAudioSeconds: 3600 },
  }).catch((error: unknown) => error);
}

const byMachine = { name: 'ToolFailure' };
const byLimit = { name: 'MediaFailure', code: 'EXTRACTION_FAILED' };

it.each([
  ...(['SEGV', 'BUS', 'ILL', 'ABRT', 'KILL', 'TERM'] as const).map((signal) => [signal, byMachine] as const),
  ...(['SYS', 'XFSZ'] as const).map((signal) => [signal, byLimit] as const),
])('SIG%s ends it: %o', async (signal, failure) => {
  const dying = startedBy(['/bin/sh', '-c', `kill -${signal} $$`]);
  expect(await failureOf(dying)).toMatchObject(failure);
});

it.each([
  ['SIGSEGV', byMachine],
  ['SIGXFSZ', byLimit],
] as const)('%s ends it in its sandbox: %o', async (signal, failure) => {
  const end = () => {
    for (const { pid } of processesOver(folder.path)) {
      // The tool itself, not a launcher before it.
      if (programOf(pid) === 'ffmpeg') signalIfThere(pid, signal);
    }
  };
  expect(await failureOf(tools, end)).toMatchObject(failure);
});

it('no memory is a limit of ours where the machine has some, and the fault of the machine where it has none', async () => {
  const line = '[mov,mp4,m4a,3gp,3g2,mj2 @ 0x5555555be480] error reading header: Cannot allocate memory';
  const starved = startedBy(['/bin/sh', '-c', `echo '${line}' >&2; exit 1`]);
  const left = vi.spyOn(process, 'availableMemory');
  try {
    left.mockReturnValue(1024 ** 3);
    expect(await failureOf(starved)).toMatchObject(byLimit);
    left.mockReturnValue(1024 ** 2);
    expect(await failureOf(starved)).toMatchObject(byMachine);
  } finally {
    left.mockRestore();
  }
});

it('sound of which more than two thirds cannot be decoded is corrupt, whatever ffmpeg says of it', async () => {
  const film = await cachedMedia('noise.m4a', [
    ...['-f', 'lavfi', '-i', 'anoisesrc=d=10:a=0.3:seed=3', '-c:a', 'aac', '-movflags', '+faststart'],
  ]);
  const bytes = await readFile(film);
  const begin = bytes.indexOf('mdat') + 4000;
  // xorshift, so that it is the same in each run
  let state = 9;
  for (let at = begin; at < bytes.length; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state & 0xff;
  }
  await writeFile(folder.at('noise.m4a'), bytes);
  await expect(
    extract(folder.at('noise.m4a'), folder.at('noise.wav'), { format: 'wav' }),
  ).rejects.toMatchObject({
    code: 'INVALID_VIDEO',
    details: 'most of the audio could not be decoded',
  });
});
