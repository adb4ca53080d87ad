/** What the video is, and what is to be made of it. */
import type { InputFile } from '../../contract/job.ts';
import { type OutputPlan, planOutput, planVoiceRendition } from '../../media/plan.ts';
import { type Probe, probe } from '../../media/probe.ts';
import type { Step } from '../step.ts';
import type { LocalVideo } from './download.ts';

export interface AnalyzedVideo {
  readonly video: LocalVideo;
  readonly probe: Probe;
  readonly plan: OutputPlan;
  /** The rendition for a chat, when a voice message was asked for. */
  readonly voicePlan: OutputPlan | null;
}

export const analyze: Step<LocalVideo, AnalyzedVideo> = async (
  video,
  { payload, services, signal, report },
) => {
  report('analyzing_video', 0);
  const probed = video.probe ?? (await probe(services.tools, video.path, { signal }));
  const { track, ...others } = payload.output;
  const output = video.isTrack || track === undefined ? others : payload.output;
  return {
    video,
    probe: probed,
    plan: planOutput(output, probed),
    voicePlan: payload.options.voiceMessage === undefined ? null : planVoiceRendition(output, probed),
  };
};

/** @param countedSeconds the chosen track's length by its samples, once they were counted */
export function inputFileOf(
  { video, probe: probed }: AnalyzedVideo,
  countedSeconds: number | null,
): InputFile {
  return {
    name: video.name,
    size: video.sizeBytes,
    duration: countedSeconds ?? probed.durationSeconds ?? 0,
    format: probed.container.name,
    tracks: probed.tracks.map((track) => ({
      index: track.index,
      codec: track.codec,
      language: track.language,
      channels: track.channels,
      sampleRate: track.sampleRate,
      default: track.isDefault,
    })),
  };
}
