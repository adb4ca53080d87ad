/**
 * Sound that changes its sample rate or channels in the middle, as broadcasts do between a programme and its advertisements. ffmpeg sets its filters up anew
 * there, so that they forget where on the clock they are, what they measured and how many samples they cut. So the sound is first decoded to PCM of one form,
 * by filters that remember nothing of time, and all runs read that.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MediaFailure } from './failure.ts';
import { tracksOf, uniformGraph } from './graph.ts';
import { inputOf, type Job, runOnInput, SoundChanged } from './input-run.ts';
import { uniformBytes } from './output-size.ts';
import type { OutputPlan } from './plan.ts';

/** Its fragments keep the time of each packet of PCM, which MOV without them does not. */
export const UNIFORM_MUXER = 'mov';
/** A source of floating point may be over full scale until it is levelled. */
export const UNIFORM_ENCODER = 'pcm_f32le';
const FRAGMENTS = ['-movflags', 'empty_moov+frag_discont', '-frag_duration', '10000000'];

/**
 * Does the work, and does it again on uniform sound where it turns out that a track changes.
 * @param plans all that may be encoded
 */
export async function onUniformSound<T>(
  job: Job,
  plans: readonly OutputPlan[],
  work: (job: Job) => Promise<T>,
): Promise<T> {
  try {
    return await work(job);
  } catch (error) {
    if (!(error instanceof SoundChanged)) throw error;
    return await work(await withUniformSound(job, plans));
  }
}

async function withUniformSound(job: Job, plans: readonly OutputPlan[]): Promise<Job> {
  const file = join(job.scratch, 'uniform.mov');
  const streams = tracksOf(plans).map(({ streamIndex }) => streamIndex);
  const untilSeconds = endOf(job, plans);
  const roomBytes = uniformBytes(plans, { ...job.probe, maxAudioSeconds: untilSeconds });
  await job.makeRoom?.(roomBytes);
  // All tracks lie in it.
  const maxOutputBytes = Math.max(job.maxOutputBytes, roomBytes);
  const steady = { ...job, takesChanges: true };
  await runOnInput(
    { ...steady, maxOutputBytes },
    {
      inputs: [inputOf(job)],
      graph: uniformGraph(plans),
      outputs: [
        {
          file,
          muxer: UNIFORM_MUXER,
          options: [
            ...streams.flatMap((_, nth) => ['-map', `[out${nth}]`]),
            ...['-c:a', UNIFORM_ENCODER, ...FRAGMENTS, '-avoid_negative_ts', 'disabled'],
            ...['-t', String(untilSeconds), '-fs', String(maxOutputBytes)],
          ],
        },
      ],
    },
    () => {},
  );
  if ((await stat(file)).size >= maxOutputBytes) {
    throw new MediaFailure(
      'EXTRACTION_FAILED',
      `the audio changes its sample rate or channels, and would take more than ${maxOutputBytes} bytes uncompressed`,
    );
  }
  return { ...steady, uniform: { input: { file, demuxer: 'mov', zeroSeconds: 0 }, streams } };
}

/** How much of the source is taken, seconds: where all plans end earlier, no more than a little beyond that. Otherwise a source may be longer than it says. */
function endOf({ maxAudioSeconds }: Job, plans: readonly OutputPlan[]): number {
  const ends = plans.map(({ trim }) => trim?.endSeconds ?? Number.POSITIVE_INFINITY);
  return Math.min(maxAudioSeconds + 2, Math.max(...ends) + 1);
}
