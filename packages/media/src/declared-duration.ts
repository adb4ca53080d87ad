/** How long a container says that a track is, for limits, estimates and progress; what is answered is counted. */
import type { FfprobeAnswer, FfprobeStream, Tags } from './ffprobe.ts';
import type { Container } from './sniff.ts';

export interface TrackContext {
  readonly answer: FfprobeAnswer;
  readonly container: Container;
  /** Whether ffprobe's durations come from a bitrate. */
  readonly isEstimate: boolean;
}

/** null where the container says nothing. */
export function declaredDuration(stream: FfprobeStream, context: TrackContext): number | null {
  const { answer, container, isEstimate } = context;
  const tagged = matroskaDuration(stream.tags);
  const ofTrack = tagged ?? stream.duration;
  const reported = ofTrack ?? answer.format.duration;
  if (container.declares === 'nowhere' || reported === undefined || isEstimate) return null;
  // Matroska's tag and a file's duration are ends, not lengths: they count from the file's beginning.
  const isEnd = tagged !== undefined || ofTrack === undefined;
  return Math.max(0, reported - (isEnd ? startOffset(stream, answer) : 0));
}

/** When a track begins, seconds after the file. */
export function startOffset(stream: FfprobeStream, answer: FfprobeAnswer): number {
  return Math.max(0, (stream.start_time ?? 0) - (answer.format.start_time ?? 0));
}

/** mkvmerge and ffmpeg write each track's duration as a tag: `00:00:10.985000000`. */
function matroskaDuration(streamTags: Tags): number | undefined {
  const match = /^(\d+):(\d\d):(\d\d(?:\.\d+)?)$/.exec(streamTags.DURATION ?? '');
  return match ? Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3]) : undefined;
}
