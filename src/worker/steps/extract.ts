/** The audio is taken out, and made louder or quieter when that was asked for. */
import { join } from 'node:path';
import { type Extraction, extractAudio } from '../../media/extract.ts';
import { roomFor } from '../../media/output-size.ts';
import type { Step } from '../step.ts';
import type { AnalyzedVideo } from './analyze.ts';

export interface ExtractedAudio extends AnalyzedVideo {
  readonly extraction: Extraction;
}

export const extract: Step<AnalyzedVideo, ExtractedAudio> = async (analyzed, context) => {
  const { services, workspace, signal } = context;
  const { plan, voicePlan, probe, video } = analyzed;
  // One decode may serve both steps, so each shows its own half of the run.
  const normalizes = plan.loudnessLufs !== null;
  let step: 'extracting_audio' | 'normalizing_audio' = 'extracting_audio';
  let stepBeganAt = 0;
  let done = 0;
  context.report(step, 0);
  const source = { ...probe, maxAudioSeconds: services.limits.maxAudioSeconds };
  const rooms = [plan, voicePlan].map((made) => (made === null ? 0 : roomFor(made, source)));
  await context.space.grow(
    rooms.reduce((sum, bytes) => sum + bytes, 0),
    signal,
  );
  const extraction = await extractAudio({
    tools: services.tools,
    input: video.path,
    probe,
    plan,
    workspace,
    outputPath: join(workspace, 'output'),
    ...(voicePlan === null ? {} : { voice: { plan: voicePlan, path: join(workspace, 'voice') } }),
    signal,
    maxAudioSeconds: services.limits.maxAudioSeconds,
    onStep(next) {
      if (next !== step) {
        step = next;
        stepBeganAt = done;
        context.report(step, 0);
      }
    },
    onProgress(fraction) {
      done = fraction;
      const ofStep = normalizes && step === 'extracting_audio' ? 0.5 : 1;
      context.report(step, (fraction - stepBeganAt) / (ofStep - stepBeganAt || 1));
    },
  });
  return { ...analyzed, extraction };
};
