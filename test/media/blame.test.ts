/** Whose fault it is that ffmpeg did not end well: what this machine did is worth another try, what a limit of ours ended is not (decisions A7). */
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { MediaTools } from '../../src/media/run.ts';
import { signalIfThere } from '../processes.ts';
import { bareTools, extract, startedBy, tools } from './extracting.ts';
import { ffmpeg } from './oracle.ts';
import { mediaFolder } from './sources.ts';

const folder = mediaFolder();
const hour = () => folder.at('hour.wav');
beforeAll(() => ffmpeg('-v', 'error', '-f', 'lavfi', '-i', 'anoisesrc=d=3600:r=8000', hour()));
afterEach(() => vi.restoreAllMocks());

/** Of the tool itself, not of a launcher before it. */
function ffmpegPids(input: string): number[] {
  return readdirSync('/proc')
    .filter((id) => {
      try {
        const [program = '', ...args] = readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0');
        return program.endsWith('ffmpeg') && args.some((arg) => arg.endsWith(input));
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function endedBy(signal: NodeJS.Signals, confined: MediaTools): Promise<unknown> {
  return extract(
    hour(),
    folder.at(`${signal}.aac`),
    { format: 'aac', sampleRate: 48_000 },
    {
      tools: confined,
      onProgress: () => {
        for (const pid of ffmpegPids(hour())) signalIfThere(pid, signal);
      },
    },
  ).catch((error: unknown) => error);
}

it.each([
  ...(['SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGABRT', 'SIGKILL', 'SIGTERM'] as const).map((signal) => ({
    signal,
    name: 'ToolFailure',
  })),
  ...(['SIGSYS', 'SIGXFSZ'] as const).map((signal) => ({
    signal,
    name: 'MediaFailure',
    code: 'EXTRACTION_FAILED',
  })),
])('$signal ends it: $name', async ({ signal, ...failure }) => {
  expect(await endedBy(signal, tools)).toMatchObject(failure);
  expect(await endedBy(signal, bareTools)).toMatchObject(failure);
});

it('no memory is a limit of ours where the machine has some, and the fault of the machine where it has none', async () => {
  const line = '[mov,mp4,m4a,3gp,3g2,mj2 @ 0x5555555be480] error reading header: Cannot allocate memory';
  const starved = startedBy(['/bin/sh', '-c', `echo '${line}' >&2; exit 1`]);
  const endedWith = async (leftBytes: number): Promise<unknown> => {
    vi.spyOn(process, 'availableMemory').mockReturnValue(leftBytes);
    const output = folder.at('starved.aac');
    return extract(hour(), output, { format: 'aac' }, { tools: starved }).catch((error: unknown) => error);
  };
  expect(await endedWith(1024 ** 3)).toMatchObject({ name: 'MediaFailure', code: 'EXTRACTION_FAILED' });
  expect(await endedWith(1024 ** 2)).toMatchObject({ name: 'ToolFailure' });
});
