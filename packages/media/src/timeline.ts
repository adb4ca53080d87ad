/**
 * The source's clock (decisions A2a), the only place that compares durations. Second 0 is the earliest presentation time of
 * the source's streams; ffmpeg's timestamps count from it, edit lists applied and the jumps of transport streams taken out.
 */

/** Audio that runs ahead of the clock by more than this gets silence; nothing smaller is touched (decisions A2a). */
export const CLOCK_TOLERANCE_SECONDS = 0.04;

/** A part of the source, in seconds on its clock. */
interface Span {
  readonly startSeconds: number;
  /** null: to the end. */
  readonly endSeconds: number | null;
}

/**
 * Gives each frame the sample that it belongs to: the one after the frame before it, or, beyond a gap, its own place on the clock. A frame that
 * comes early keeps to the frame before it, so that no sample is lost. `ld(0)` is the sample that comes next, `ld(2)` what was filled of the span;
 * its last value in the log is what {@link filledSamples} reads.
 * @param clock its number among those of a graph, 0 … 9999
 */
export function clockFilter(span: Span | null, clock = 0): string {
  const start = `${span?.startSeconds ?? 0}*SR`;
  const end = span?.endSeconds == null ? 'PTS' : `min(PTS,${span.endSeconds}*SR)`;
  const filled = `ld(2)+max(0,${end}-max(ld(0),${start}))`;
  const gap = `gt(PTS-ld(0),${CLOCK_TOLERANCE_SECONDS}*SR)`;
  const place = `if(${gap},st(2,${filled})*0+print(${FILLED - clock * EACH_CLOCK}-ld(2))*0+print(${PLACE}-N)*0+PTS,ld(0))`;
  return `asetpts='st(1,${place})*0+st(0,ld(1)+NB_SAMPLES)*0+ld(1)'`;
}

/** After {@link clockFilter}, where timestamps lie beyond one another by gaps alone: silence for each, and for a late beginning. */
export const FILL_FILTER = 'aresample=async=1:first_pts=0:min_hard_comp=0.02';

/** ffmpeg's `print` writes bare numbers: so far below zero stands nothing else in its log. Four digits are the clock's number, eleven what it filled. */
const FILLED = -1e15;
const EACH_CLOCK = 1e11;
const PLACE = -2e15;
const LOGGED = /-1(\d{4})(\d{11})\.\d+\s+-2(\d{15})\.\d+$/gm;

/**
 * Samples of silence within the span, at the source's rate, by what the graph of a run logged. The filter is asked once more at the end of the track, with
 * a timestamp in another time base: a gap that nothing follows is none.
 */
export function filledSamples(stderr: string, decodedSamples: number, clock = 0): number {
  const gap = [...stderr.matchAll(LOGGED)].findLast(
    ([, number, , place]) => Number(number) === clock && Number(place) < decodedSamples,
  );
  return Number(gap?.[2] ?? 0);
}

/** What the packets of a copy hold, and where the track that they are of stands. */
interface Copied {
  readonly seconds: number;
  /** Where the track begins and ends on the source's clock. */
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Whether the new container can hide what an edit list had hidden. */
  readonly hides: boolean;
  /** Of one packet: not every container says how long the last one is, nor how much of the first one is the encoder's delay. */
  readonly packetSeconds: number;
}

/** Whether a copy keeps to the clock. After a gap it holds less than lies between beginning and end, and more where an edit list no longer hides it. */
export function keepsClock({ seconds, startSeconds, endSeconds, hides, packetSeconds }: Copied): boolean {
  const more = seconds - (endSeconds - startSeconds);
  return (
    more >= -CLOCK_TOLERANCE_SECONDS && (hides || more <= Math.max(CLOCK_TOLERANCE_SECONDS, packetSeconds))
  );
}

/** Whether an FLV ends so long before its own word that something is missing. Encoders round it; a file that ends within a tag was cut off, however little is missing. */
export function endsEarly(endSeconds: number, declaredSeconds: number, isWhole: boolean): boolean {
  const rounding = isWhole ? Math.max(1, declaredSeconds * 0.02) : 0.1;
  return declaredSeconds - endSeconds > rounding;
}
