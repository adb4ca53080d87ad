/** How long a container says that a track is: what is missing of it tells a truncated file. */
import type { FfprobeAnswer, FfprobeStream, Tags } from './ffprobe.ts';
import type { Container } from './sniff.ts';

export interface TrackContext {
  readonly answer: FfprobeAnswer;
  readonly container: Container;
  /** Whether ffprobe's durations come from a bitrate. */
  readonly isEstimate: boolean;
  readonly head: Uint8Array;
  readonly sizeBytes: number;
}

/** null where the container says nothing; for the whole file where another track may be the one of that length. */
export function declaredDuration(
  stream: FfprobeStream,
  context: TrackContext,
): { declaredSeconds: number | null; declaredForFile: boolean } {
  const { answer, container } = context;
  const tagged = matroskaDuration(stream.tags);
  const ofTrack = tagged ?? stream.duration;
  const reported = ofTrack ?? answer.format.duration;
  const riff = riffOvershoot(context);
  if (container.declares === 'nowhere' || reported === undefined || (context.isEstimate && riff === 1)) {
    return { declaredSeconds: null, declaredForFile: false };
  }
  // Matroska's tag and a file's duration are ends, not lengths: they count from the file's beginning.
  const isEnd = tagged !== undefined || ofTrack === undefined;
  const offset = isEnd ? startOffset(stream, answer) : 0;
  return {
    declaredSeconds: Math.max(0, reported * riff - offset),
    declaredForFile: ofTrack === undefined,
  };
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

/**
 * How much larger a RIFF file says it is than it is: ffmpeg reports what is left of a truncated WAV or AVI as its
 * whole duration. Sizes of 0 and near 2 and 4 GiB are what programs write that cannot seek back.
 */
function riffOvershoot({ head, sizeBytes }: TrackContext): number {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (head.length < 12 || view.getUint32(0) !== 0x52494646) return 1;
  const declaredBytes = view.getUint32(4, true) + 8;
  const isPlaceholder = declaredBytes <= 8 || declaredBytes >= 0xffff0000 || declaredBytes >>> 16 === 0x7fff;
  return isPlaceholder ? 1 : Math.max(1, declaredBytes / sizeBytes);
}
