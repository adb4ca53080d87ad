/** Whether what no run has decoded is silent: copies, and other tracks (decisions A4, SILENT). */
import type { CommandInput } from './command.ts';
import { MediaFailure } from './failure.ts';
import { inputOf, type Job, runOnInput } from './input-run.ts';
import { hasSound, peakFilter, type SoundWarning } from './mixing.ts';
import type { AudioTrack } from './probe.ts';
import { demuxerOf, type RenderedFile } from './render.ts';
import type { Rendition } from './rendition.ts';

/** Where it is listened to first, as shares of its length, and for how long. */
const WINDOWS = [0.02, 0.3, 0.6, 0.9];
const WINDOW_SECONDS = 2;

/** Decodes a few windows, and all of it only if these are silent, unless its own run has. */
export async function warningsOfCopy(
  job: Job,
  { plan }: Pick<Rendition, 'plan'>,
  { path, durationSeconds, sounds: sounded }: RenderedFile,
): Promise<SoundWarning[]> {
  if (sounded !== undefined) return sounded ? [] : ['SILENT'];
  const input = { file: path, demuxer: demuxerOf(plan.format.muxer) };
  const isSilent = async (parts: readonly CommandInput[]): Promise<boolean> =>
    (await sounds(job, parts, 'a:0')).every((sound) => sound === false);
  const isShort = durationSeconds <= WINDOWS.length * WINDOW_SECONDS;
  if (!isShort && !(await isSilent(windowsOf(input, durationSeconds)))) return [];
  return (await isSilent([input])) ? ['SILENT'] : [];
}

/** Indexes of tracks with sound in a few windows. */
export async function soundingTracks(job: Job, tracks: readonly AudioTrack[]): Promise<number[]> {
  const windows = windowsOf(inputOf(job), job.probe.durationSeconds ?? 0);
  const sounding: number[] = [];
  for (const { index, streamIndex } of tracks) {
    if ((await sounds(job, windows, String(streamIndex))).includes(true)) sounding.push(index);
  }
  return sounding;
}

function windowsOf(input: CommandInput, seconds: number): CommandInput[] {
  return WINDOWS.map((share) => ({
    ...input,
    part: { startSeconds: share * seconds, seconds: WINDOW_SECONDS },
  }));
}

/**
 * Of each input, whether its stream has sound; undefined: nothing of it was decoded, since it is
 * damaged, or of a source of which other parts were fetched. That never fails a job.
 */
async function sounds(
  job: Job,
  inputs: readonly CommandInput[],
  stream: string,
): Promise<(boolean | undefined)[]> {
  const outputs = inputs.map((_, nth) => ({
    muxer: 'null',
    options: ['-map', `${nth}:${stream}`, '-filter:a', peakFilter(nth)],
  }));
  try {
    const { stderr } = await runOnInput(job, { inputs, outputs }, () => {});
    return inputs.map((_, nth) => hasSound(stderr, nth));
  } catch (error) {
    if (!(error instanceof MediaFailure)) throw error;
    return inputs.map(() => undefined);
  }
}
