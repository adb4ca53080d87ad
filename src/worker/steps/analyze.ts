/** Probes the video and plans the outputs. */
import { type FormatName, isAudioFormat } from 'soundpost-contract/formats';
import type { InputFile } from 'soundpost-contract/job';
import { type NamedOutput, outputsOf } from 'soundpost-contract/output-request';
import { MediaFailure } from 'soundpost-media/failure';
import { type OutputPlan, planAny, planVoiceRendition } from 'soundpost-media/plan';
import { type Probe, probe } from 'soundpost-media/probe';
import type { LocalSource } from 'soundpost-media/source-request';
import { chooseTrack, offeredTracks } from 'soundpost-media/track-choice';
import type { ExtractPayload } from '../../jobs/payloads.ts';
import type { Step } from '../step.ts';

interface PlannedOutput {
  readonly name: string;
  readonly plan: OutputPlan;
}

/** A transcript without audio to transcribe: the job continues without it (decisions A8). */
interface NotMade {
  readonly name: string;
  /** Callers see it. */
  readonly why: string;
}

export interface AnalyzedVideo {
  readonly video: LocalSource;
  readonly probe: Probe;
  /** In the order of the request. */
  readonly outputs: readonly [PlannedOutput, ...PlannedOutput[]];
  readonly notMade: readonly NotMade[];
  /** By name: the transcript that is heard for this one too. */
  readonly heardAs: ReadonlyMap<string, string>;
  /** The rendition for a chat, when a voice message was asked for. */
  readonly voicePlan: OutputPlan | null;
}

export const analyze: Step<LocalSource, AnalyzedVideo> = async (
  video,
  { payload, services, signal, report },
) => {
  report('analyzing_video', 0);
  const probed = video.probe ?? (await probe(services.tools, video.path, { signal }));
  const asked = outputsOf(payload);
  const [first, ...others] = asked;
  if (first === undefined) throw new Error('a probe has no output to plan');
  // The file holds a single track, so none is selected.
  const chosen = <Output extends NamedOutput>(output: Output): Output =>
    video.isTrack ? { ...output, track: undefined } : output;
  // Of a stream only the first output's rendition is in the file.
  const heardAs = heardTogether(asked, ({ track }) => (video.isTrack ? track : trackNamed(probed, track)));
  const planned = (output: NamedOutput): PlannedOutput => ({
    name: output.name,
    plan: planAny(chosen(output), probed),
  });
  const notMade: NotMade[] = [];
  const plannedOrNot = (output: NamedOutput): PlannedOutput[] => {
    try {
      if (video.elsewhere?.includes(output.name)) throw new MediaFailure('EXTRACTION_FAILED', ELSEWHERE);
      return [planned(output)];
    } catch (error) {
      if (output.format !== 'transcript' || !(error instanceof MediaFailure)) throw error;
      notMade.push({ name: output.name, why: error.details });
      return [];
    }
  };
  return {
    video,
    probe: probed,
    outputs: [planned(first), ...others.filter(({ name }) => !heardAs.has(name)).flatMap(plannedOrNot)],
    notMade,
    heardAs,
    voicePlan: wantsVoice(payload, first) ? planVoiceRendition(chosen(first), probed) : null,
  };
};

/** The rendition is made of the first output, if that is audio. */
function wantsVoice(
  { options }: ExtractPayload,
  first: NamedOutput,
): first is Extract<NamedOutput, { format: FormatName }> {
  return options.voiceMessage !== undefined && isAudioFormat(first.format);
}

/** A track is heard once: transcripts that differ in what is written alone share it. */
function heardTogether(
  outputs: readonly NamedOutput[],
  trackOf: (output: NamedOutput) => NamedOutput['track'],
): ReadonlyMap<string, string> {
  const firsts = new Map<string, string>();
  const heardAs = new Map<string, string>();
  for (const output of outputs) {
    if (output.format !== 'transcript') continue;
    const { name, track: _named, subtitles: _written, destination: _put, ...heard } = output;
    const settings = JSON.stringify([trackOf(output), heard]);
    const first = firsts.get(settings);
    if (first === undefined) firsts.set(settings, name);
    else heardAs.set(name, first);
  }
  return heardAs;
}

/** Its number, however it is asked for; as asked where there is none. */
function trackNamed(probed: Probe, asked: NamedOutput['track']): NamedOutput['track'] {
  try {
    return chooseTrack(probed, asked).index;
  } catch (error) {
    if (!(error instanceof MediaFailure)) throw error;
    return asked;
  }
}

const ELSEWHERE =
  'a job can use only one audio track of an HLS or DASH stream: the track of the first output';

/** @param countedSeconds length of the first output's track by its samples, where counted */
export function inputFileOf(
  { video, probe: probed }: Pick<AnalyzedVideo, 'video' | 'probe'>,
  countedSeconds: number | null,
): InputFile {
  return {
    name: video.name,
    size: video.sizeBytes,
    duration: countedSeconds ?? probed.durationSeconds ?? 0,
    format: probed.container.name,
    tracks: offeredTracks(probed).map((track) => ({
      index: track.index,
      codec: track.codec,
      language: track.language,
      channels: track.channels,
      layout: track.layout,
      sampleRate: track.sampleRate,
      default: track.isDefault,
      decodable: track.isDecodable && !track.isEncrypted,
      encrypted: track.isEncrypted,
    })),
  };
}
