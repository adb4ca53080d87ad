/** Extracts the audio, and normalizes its loudness on request. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type Extraction, extractAudio } from 'soundpost-media/extract';
import { roomFor, roomForRun } from 'soundpost-media/output-size';
import type { Parallelism } from 'soundpost-media/parallel/render';
import { isLight, type OutputPlan } from 'soundpost-media/plan';
import { emptiness } from 'soundpost-media/render';
import type { Step, StepContext } from '../step.ts';
import type { AnalyzedVideo } from './analyze.ts';

export interface ExtractedAudio extends AnalyzedVideo {
  readonly extraction: Extraction;
}

export const extract: Step<AnalyzedVideo, ExtractedAudio> = async (analyzed, context) => {
  const { services, workspace, signal } = context;
  const { outputs, voicePlan, probe, video } = analyzed;
  const plans = outputs.map(({ plan }) => plan);
  // One decode may serve both steps, so each shows its own half of the run.
  const normalizes = plans.some(({ loudnessLufs }) => loudnessLufs !== null);
  let step: 'extracting_audio' | 'normalizing_audio' = 'extracting_audio';
  let stepBeganAt = 0;
  let done = 0;
  let endNormalise: (() => void) | undefined;
  context.report(step, 0);
  const mayUseCores = services.encoding.capacity > 1;
  // Not split beside other outputs or a voice message, which need the other cores. A normalized
  // output is encoded in a run of its own.
  const beside = plans.filter((plan) => plan.loudnessLufs === null && !isLight(plan)).length;
  const isCut = (plan: OutputPlan, nth: number): boolean =>
    mayUseCores && (plan.loudnessLufs !== null || beside === 1) && (nth > 0 || voicePlan === null);
  const source = { ...probe, maxAudioSeconds: services.limits.maxAudioSeconds, mayUseParts: false };
  const { split = false, trimSilence = false } = context.payload.options.voiceMessage ?? {};
  const run = { split, trimSilence };
  const rooms = plans.map((plan, nth) => roomFor(plan, { ...source, mayUseParts: isCut(plan, nth) }));
  if (voicePlan !== null) rooms.push(roomFor(voicePlan, source), roomForRun(voicePlan, run, source));
  await context.space.grow(
    rooms.reduce((sum, bytes) => sum + bytes, 0),
    signal,
  );
  const [first, ...others] = outputs;
  const wanted = ({ name, plan }: (typeof outputs)[number]) => ({ plan, path: outputPath(workspace, name) });
  const extracting = extractAudio({
    tools: services.tools,
    input: video.path,
    probe,
    outputs: [wanted(first), ...others.map(wanted)],
    workspace,
    ...(voicePlan === null ? {} : { voice: { plan: voicePlan, path: join(workspace, 'voice'), run } }),
    signal,
    maxAudioSeconds: services.limits.maxAudioSeconds,
    makeRoom: (bytes) => context.space.grow(bytes, signal),
    ...(mayUseCores ? { parallel: idlePlaces(context) } : {}),
    onStep(next) {
      if (next !== step) {
        step = next;
        stepBeganAt = done;
        context.report(step, 0);
      }
      if (next === 'normalizing_audio') endNormalise ??= beginNormalise(context);
    },
    onProgress(fraction) {
      done = fraction;
      const ofStep = normalizes && step === 'extracting_audio' ? 0.5 : 1;
      context.report(step, (fraction - stepBeganAt) / (ofStep - stepBeganAt || 1));
    },
  });
  const extraction = await extracting.finally(() => endNormalise?.());
  const empty = outputs.filter((_, nth) => extraction.files[nth]?.durationSeconds === 0);
  const notMade = empty.map(({ name, plan }) => ({ name, why: emptiness(plan).details }));
  return { ...analyzed, extraction, notMade: [...analyzed.notMade, ...notMade] };
};

/** The path of an output in the workspace. */
export function outputPath(workspace: string, name: string): string {
  return join(workspace, `output-${name}`);
}

function beginNormalise({ services: { observer, tracing } }: StepContext): () => void {
  const startedAt = performance.now();
  const end = tracing?.begin('normalize', {});
  return () => {
    observer?.stepEnded('normalize', (performance.now() - startedAt) / 1000);
    end?.({});
  };
}

/** Idle: a free encoder slot that no job waits for (docs/decisions/0012-parallel-encoding.md). */
function idlePlaces({ services, logger }: StepContext): Parallelism {
  return {
    takeIdle(most) {
      const cores = availableParallelism();
      // With more slots than cores, the last free ones have no core of their own.
      const surplus = Math.max(0, services.encoding.capacity - cores);
      const { weight, release } = services.encoding.takeFree(Math.min(most, cores) - 1, surplus);
      return { count: 1 + weight, release };
    },
    onUnjoined: (why) => logger.debug({ why }, 'the output is encoded again, in one'),
  };
}
