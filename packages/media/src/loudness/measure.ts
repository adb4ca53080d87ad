/** Runs that measure loudness and peaks (ITU-R BS.1770, by ffmpeg's ebur128). */
import { stat } from 'node:fs/promises';
import { AS_IT_IS, type Branch, filterGraphs, type Gain } from '../graph.ts';
import { EmptyOutputs, inputsOf, type Job, runOnInput } from '../input-run.ts';
import { type Heard, heardOf } from '../mixing.ts';
import type { OutputPlan } from '../plan.ts';
import { clockOf, demuxerOf, emptiness } from '../render.ts';
import type { LevelledPcm, Rendition } from '../rendition.ts';
import { loudnessSummary } from '../tool-output.ts';

type MeasuredLoudness = ReturnType<typeof loudnessSummary>;

type OnSeconds = (seconds: number) => void;

/**
 * True peaks include those between samples, found at four times the rate: as slow as the rest.
 * -8 is `quiet`, which 5.1 does not know by name.
 */
export const ebur128 = (peaks: 'none' | 'sample' | 'true'): string => `ebur128=peak=${peaks}:framelog=-8`;

/**
 * The track as the encoder would get it, mixed and resampled, with peaks of the samples.
 * @param plans the first is measured; the others are of the same part of the same track
 */
export async function measureTrack(
  job: Job,
  plans: readonly [OutputPlan, ...OutputPlan[]],
  onSeconds: OnSeconds,
): Promise<{ measured: MeasuredLoudness; heard: readonly Heard[] }> {
  const [plan] = plans;
  const branch = { plan, gain: AS_IT_IS, last: [ebur128('sample')] };
  const { measured, stderr } = await runTrack(job, branch, plans, null, onSeconds).catch((error: unknown) => {
    throw error instanceof EmptyOutputs ? emptiness(plan) : error;
  });
  return { measured, heard: plans.map((each) => heardOf(each, stderr, 0)) };
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
  const branch = { plan, gain, last: [ebur128('none')] };
  const { measured, stderr } = await runTrack(job, branch, [], path, onSeconds);
  const clock = clockOf(job, { plan, pcm: null }, stderr, 0);
  // A source longer than it declares may have been cut off; then the encoder reads the source.
  const isWhole = path !== null && (await stat(path)).size < job.maxOutputBytes;
  return { lufs: measured.lufs, pcm: isWhole ? { path, ...clock } : null };
}

async function runTrack(
  job: Job,
  branch: Branch,
  heard: readonly OutputPlan[],
  path: string | null,
  onSeconds: OnSeconds,
): Promise<{ measured: MeasuredLoudness; stderr: string }> {
  const bound = ['-map', '[out0]', '-t', String(job.maxAudioSeconds + 2)];
  const pcm = ['-c:a', 'pcm_s24le', '-rf64', 'auto', '-fs', String(job.maxOutputBytes)];
  const { stderr } = await runOnInput(
    job,
    {
      inputs: inputsOf(job),
      graphs: filterGraphs(job, [branch], heard),
      outputs: [
        path === null
          ? { muxer: 'null', options: bound }
          : { file: path, muxer: 'wav', options: [...bound, ...pcm] },
      ],
    },
    onSeconds,
  );
  return { measured: loudnessSummary(stderr), stderr };
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
