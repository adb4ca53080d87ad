/**
 * The source's clock (decisions A2a); only this file compares durations. Second 0 is the earliest
 * presentation time of the source's streams: ffmpeg's timestamps, after edit lists and jumps.
 */

/** If audio is ahead of the clock by more, silence is inserted; less is ignored (decisions A2a). */
export const CLOCK_TOLERANCE_SECONDS = 0.04;

/** A part of the source, in seconds on its clock. */
interface Span {
  readonly startSeconds: number;
  /** null: to the end. */
  readonly endSeconds: number | null;
}

/**
 * Gives each frame its sample: the one after the last frame, or, after a gap, its own on the clock.
 * An early frame follows the last one, so that no sample is lost. `ld(0)` is the next sample.
 */
export const CLOCK_FILTER = `asetpts='st(1,if(gt(PTS-ld(0),${CLOCK_TOLERANCE_SECONDS}*SR),PTS,ld(0)))*0+st(0,ld(1)+NB_SAMPLES)*0+ld(1)'`;

/**
 * After {@link CLOCK_FILTER}: adds up in `ld(2)` the silence in the span, and logs it at each gap
 * for {@link filledSamples}. Unlike asetpts it sees frames alone, not the end of a track or a cut.
 * @param clock its number in the run, 0 … 9999
 */
export function gapMeter(span: Span | null, clock: number): string {
  const start = `${span?.startSeconds ?? 0}*sample_rate`;
  const end = span?.endSeconds == null ? 'pts' : `min(pts,${span.endSeconds}*sample_rate)`;
  const filled = `ld(2)+max(0,${end}-max(ld(0),${start}))`;
  const gap = `gt(pts-ld(0),${CLOCK_TOLERANCE_SECONDS}*sample_rate)`;
  const logged = `st(2,${filled})*0+print(${FILLED - clock * EACH_CLOCK}-ld(2))*0`;
  return `aselect='if(${gap},${logged})+st(0,pts+samples_n)*0+1'`;
}

/** Samples follow each other from the track's beginning, whatever their timestamps say. */
export function continuousFilter(track: { startSeconds: number; isContinuous?: boolean }): string[] {
  return track.isContinuous === true ? [`asetpts='(N/SR+${track.startSeconds})/TB'`] : [];
}

/** After {@link CLOCK_FILTER}, which leaves only gaps: silence for each, and a late beginning. */
export const FILL_FILTER = 'aresample=async=1:first_pts=0:min_hard_comp=0.02';

/** ffmpeg prints nothing else so far below 0. Four digits: the clock; eleven: its silence. */
const FILLED = -1e15;
const EACH_CLOCK = 1e11;
const LOGGED = /-1(\d{4})(\d{11})\.\d+$/gm;

/** Samples of silence within a span, at the source's rate, by the log of a run. */
export function filledSamples(stderr: string, clock: number): number {
  const gap = [...stderr.matchAll(LOGGED)].findLast(([, number]) => Number(number) === clock);
  return Number(gap?.[2] ?? 0);
}

/** What a copy's packets hold, and where their track is. */
interface Copied {
  readonly seconds: number;
  /** Where the track begins and ends on the source's clock. */
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Whether the new container can hide what an edit list had hidden. */
  readonly hides: boolean;
  /** Of one packet: the last one's length, or the delay in the first, may not be known. */
  readonly packetSeconds: number;
}

/** Whether a copy keeps to the clock: it holds less after a gap, more if an edit list is lost. */
export function keepsClock({ seconds, startSeconds, endSeconds, hides, packetSeconds }: Copied): boolean {
  const more = seconds - (endSeconds - startSeconds);
  return (
    more >= -CLOCK_TOLERANCE_SECONDS && (hides || more <= Math.max(CLOCK_TOLERANCE_SECONDS, packetSeconds))
  );
}

/** Whether an FLV ends before its declared end: by more than rounding, or within a tag. */
export function endsEarly(endSeconds: number, declaredSeconds: number, isWhole: boolean): boolean {
  const rounding = isWhole ? Math.max(1, declaredSeconds * 0.02) : 0.1;
  return declaredSeconds - endSeconds > rounding;
}
