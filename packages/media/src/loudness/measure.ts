/** Runs that measure loudness and peaks (ITU-R BS.1770, by ffmpeg's ebur128). */
import { stat } from 'node:fs/promises';
import { branchFilters, filterGraph, type Gain } from '../graph.ts';
import { inputsOf, type Job, runOnInput } from '../input-run.ts';
import type { OutputPlan } from '../plan.ts';
import { clockOf, demuxerOf } from '../render.ts';
import type { LevelledPcm, Rendition } from '../rendition.ts';
import { loudnessSummary } from '../tool-output.ts';

type MeasuredLoudness = ReturnType<typeof loudnessSummary>;

type OnSeconds = (seconds: number) => void;

/** True peaks include those between samples, found at four times the rate: as slow as the rest. */
export const ebur128 = (peaks: 'none' | 'sample' | 'true'): string =>
  `ebur128=peak=${peaks}:framelog=verbose`;

/** The track as the encoder would get it, mixed and resampled, with peaks of the samples. */
export async function measureTrack(
  job: Job,
  plan: OutputPlan,
  onSeconds: OnSeconds,
): Promise<MeasuredLoudness> {
  const { measured } = await runTrack(job, plan, null, ebur128('sample'), null, onSeconds);
  return measured;
}

/**
 * Writes the track with its gain and its limiter while measuring it, without peaks.
 * @param path of a WAV file, 24 bits a sample; null: it is only measured
 */
export async function levelTrack(
  job: Job,
  plan: OutputPlan,
  gain: Gain,
  path: string | null,
  onSeconds: OnSeconds,
): Promise<{ lufs: number | null; pcm: LevelledPcm | null }> {
  const { measured, clock } = await runTrack(job, plan, gain, ebur128('none'), path, onSeconds);
  // A source longer than it declares may have been cut off; then the encoder reads the source.
  const isWhole = path !== null && (await stat(path)).size < job.maxOutputBytes;
  return { lufs: measured.lufs, pcm: isWhole ? { path, ...clock } : null };
}

async function runTrack(
  job: Job,
  plan: OutputPlan,
  gain: Gain | null,
  meter: string,
  path: string | null,
  onSeconds: OnSeconds,
): Promise<{ measured: MeasuredLoudness; clock: Omit<LevelledPcm, 'path'> }> {
  const bound = ['-map', '[out0]', '-t', String(job.maxAudioSeconds + 2)];
  const pcm = ['-c:a', 'pcm_s24le', '-rf64', 'auto', '-fs', String(job.maxOutputBytes)];
  const { stderr } = await runOnInput(
    job,
    {
      inputs: inputsOf(job),
      graph: filterGraph(job, [{ plan, filters: `${branchFilters(plan, gain)},${meter}` }]),
      outputs: [
        path === null
          ? { muxer: 'null', options: bound }
          : { file: path, muxer: 'wav', options: [...bound, ...pcm] },
      ],
    },
    onSeconds,
  );
  return {
    measured: loudnessSummary(stderr),
    clock: clockOf(job, { plan, pcm: null }, stderr, 0),
  };
}

/** A finished file, decoded, with its true peak. */
export async function measureFile(
  job: Job,
  { plan, path }: Pick<Rendition, 'plan' | 'path'>,
  onSeconds: OnSeconds,
): Promise<MeasuredLoudness> {
  const { stderr } = await runOnInput(
    job,
    {
      inputs: [{ file: path, demuxer: demuxerOf(plan.format.muxer) }],
      outputs: [{ muxer: 'null', options: ['-map', '0:a:0', '-filter:a', ebur128('true')] }],
    },
    onSeconds,
  );
  return loudnessSummary(stderr);
}
