/**
 * Sound that changes its sample rate or channels in the middle, as broadcasts do between a programme and its advertisements. ffmpeg sets its filters up anew
 * there, so that they forget where on the clock they are, what they measured and how many samples they cut. So the sound is first decoded to PCM of one form,
 * by filters that remember nothing, and all runs read that.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MediaFailure } from './failure.ts';
import { tracksOf, uniformGraph } from './graph.ts';
import { inputOf, type Job, runOnInput, SoundChanged } from './input-run.ts';
import type { OutputPlan } from './plan.ts';
import { probe } from './probe.ts';

/** Its fragments keep the time of each packet of PCM, which MOV without them does not. */
export const UNIFORM_MUXER = 'mov';
const UNIFORM_ENCODER = 'pcm_s24le';
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
  await runOnInput(
    job,
    {
      inputs: [inputOf(job)],
      graph: uniformGraph(plans),
      takesChanges: true,
      outputs: [
        {
          file,
          muxer: UNIFORM_MUXER,
          options: [
            ...streams.flatMap((_, nth) => ['-map', `[out${nth}]`]),
            ...['-c:a', UNIFORM_ENCODER, ...FRAGMENTS, '-avoid_negative_ts', 'disabled'],
            ...['-t', String(job.maxAudioSeconds + 2), '-fs', String(job.maxOutputBytes)],
          ],
        },
      ],
    },
    () => {},
  );
  if ((await stat(file)).size >= job.maxOutputBytes) {
    throw new MediaFailure(
      'EXTRACTION_FAILED',
      `the audio changes its sample rate or channels, and would take more than ${job.maxOutputBytes} bytes uncompressed`,
    );
  }
  const { startSeconds } = await probe(job.tools, file, { signal: job.signal, known: { zeroSeconds: 0 } });
  return { ...job, uniform: { input: { file, demuxer: 'mov', startSeconds }, streams } };
}
