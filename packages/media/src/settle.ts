/** Checks whether a file is as requested, and makes another if not. */

import type { CommandInput } from './command.ts';
import { MediaFailure } from './failure.ts';
import { AS_IT_IS, filterGraphs } from './graph.ts';
import { inputOf, inputsOf, type Job, runOnInput } from './input-run.ts';
import { ofChannel } from './mixing.ts';
import { bubbleBitrate, type OutputPlan, VOICE_BUBBLE_BYTES } from './plan.ts';
import { readFileApart } from './reading/reader.ts';
import { clockOf, type RenderedFile, render } from './render.ts';
import type { Rendition } from './rendition.ts';
import { warningsOfCopy } from './silence.ts';
import { CLOCK_TOLERANCE_SECONDS, endsEarly, keepsClock } from './timeline.ts';
import { partsOf } from './track-choice.ts';
import { flvEnd } from './truncation.ts';

/**
 * Encodes again if the copy is off the clock or over its bitrate. Also for faults that only a run
 * shows: silence instead of a delay, a mean of channels instead of one, a voice message of a wrong
 * size.
 */
export async function settle(
  job: Job,
  asked: Rendition,
  made: RenderedFile,
  ends: TrackEnds,
): Promise<RenderedFile> {
  const { copy } = asked.plan;
  if (made.copied) {
    const isAsRequested =
      made.isInForm &&
      (copy?.maxKbps == null || made.bitrateKbps <= copy.maxKbps) &&
      (copy?.maxBytes == null || made.sizeBytes <= copy.maxBytes);
    if (isAsRequested) {
      const sourceSeconds = made.sourceSeconds ?? (await ends.of(asked.plan));
      if (copyKeepsClock(asked.plan, made, sourceSeconds)) {
        return { ...made, sourceSeconds, warnings: await warningsOfCopy(job, asked, made) };
      }
    }
  }
  const encoded = made.copied ? await renderAnew(job, { ...asked, mode: 'encode' }) : made;
  const isDelayed = await ends.isDelayed(asked.plan, encoded);
  const taken = isDelayed ? { ...asked, plan: continuous(asked.plan) } : asked;
  const whole = isDelayed ? await renderAnew(job, { ...taken, mode: 'encode' }) : encoded;
  return await settleSound(job, taken, whole);
}

async function settleSound(job: Job, asked: Rendition, encoded: RenderedFile): Promise<RenderedFile> {
  const { encode } = asked.plan;
  const { channel, warnings } = encoded;
  const request = channel === null ? asked : { ...asked, plan: ofChannel(asked.plan, channel) };
  const file = channel === null ? encoded : await renderAnew(job, { ...request, mode: 'encode' });
  const fitted = encode.bubbleKbps === null ? file : await fitBubble(job, request, file, encode.bubbleKbps);
  return { ...fitted, warnings };
}

/** Of a track whose timestamps jump where its samples do not. */
function continuous(plan: OutputPlan): OutputPlan {
  return { ...plan, track: { ...plan.track, isContinuous: true } };
}

function copyKeepsClock(
  { track, format }: OutputPlan,
  { heldSeconds, packets }: RenderedFile,
  endSeconds: number,
): boolean {
  return keepsClock({
    seconds: heldSeconds,
    startSeconds: track.startSeconds,
    endSeconds,
    hides: format.muxer === 'ipod',
    packetSeconds: heldSeconds / packets,
  });
}

/** The least share of a voice bubble to use if the bitrate was lowered for it (decisions A3). */
const BUBBLE_USE = 0.9;
/** Encodings besides the first, until the best one known to fit is made again. */
const MAX_FITTINGS = 2;
/** kbit/s between attempts: SILK spends a tenth more on noise for one of two such neighbours. */
const BITRATE_STEP = 0.25;

/** Uses the file's size: the declared duration or the bitrate may have been wrong. */
export async function fitBubble(
  job: Job,
  request: Rendition,
  made: RenderedFile,
  wantedKbps: number,
): Promise<RenderedFile> {
  const lowest = bubbleBitrate(Number.POSITIVE_INFINITY);
  let file = made;
  let kbps = request.bitrateKbps ?? wantedKbps;
  // The highest bitrate that is known to fit, and the lowest that is known not to.
  let enough = lowest;
  let tooMuch = wantedKbps + BITRATE_STEP;
  let before: { readonly kbps: number; readonly sizeBytes: number } | undefined;
  for (let fitting = 0; fitting < MAX_FITTINGS; fitting += 1) {
    const { sizeBytes } = file;
    const fits = sizeBytes <= VOICE_BUBBLE_BYTES;
    if (fits) enough = Math.max(enough, kbps);
    else tooMuch = kbps;
    const isDone = fits
      ? sizeBytes >= BUBBLE_USE * VOICE_BUBBLE_BYTES || kbps + BITRATE_STEP >= tooMuch
      : kbps <= lowest;
    if (isDone) return file;
    const bytesPerKbps =
      before === undefined ? sizeBytes / kbps : (sizeBytes - before.sizeBytes) / (kbps - before.kbps);
    const missing = ((1 + BUBBLE_USE) / 2) * VOICE_BUBBLE_BYTES - sizeBytes;
    before = { kbps, sizeBytes };
    const scaled = kbps + missing / Math.max(1, bytesPerKbps);
    const stepped = Math.round(scaled / BITRATE_STEP) * BITRATE_STEP;
    kbps = Math.max(fits ? kbps + BITRATE_STEP : lowest, Math.min(tooMuch - BITRATE_STEP, stepped));
    file = await renderAnew(job, { ...request, mode: 'encode', bitrateKbps: kbps });
  }
  if (file.sizeBytes <= VOICE_BUBBLE_BYTES || kbps <= lowest) return file;
  return renderAnew(job, { ...request, mode: 'encode', bitrateKbps: enough });
}

/** A note of a run: a whole Ogg stream inside the run's file. */
interface NotePart {
  /** Where it begins in the file, bytes. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly durationSeconds: number;
  readonly fitsVoiceBubble: boolean;
}

/** A file that is one note. */
export function wholeOf({ sizeBytes, durationSeconds }: RenderedFile): NotePart {
  return { offset: 0, sizeBytes, durationSeconds, fitsVoiceBubble: sizeBytes <= VOICE_BUBBLE_BYTES };
}

export async function renderAnew(
  job: Job,
  request: Rendition,
  onSeconds: (seconds: number) => void = () => {},
): Promise<RenderedFile> {
  const [file] = await render(job, [request], onSeconds);
  if (file === undefined) throw new Error('a run made no file');
  return file;
}

// Where a source and its tracks end, and whether that is too early.

/** A source of which nothing need be made. */
type LookedAt = Omit<Job, 'scratch' | 'maxAudioSeconds' | 'maxOutputBytes'>;

/** The missing part of a truncated file; null if it is whole, or unknown. */
export async function truncationOf(job: LookedAt): Promise<string | null> {
  const { container, sizeBytes } = job.probe;
  const local = { path: job.input, demuxer: container.demuxer, sizeBytes };
  const reading = { signal: job.signal, charge: job.tools.meter, owner: job.tools.owner };
  const missing = await readFileApart('missingEnd', local, reading);
  if (missing !== null) return `${missing}${await missingSeconds(job)}`;
  if (container.demuxer !== 'flv') return null;
  const said = await flvEnd(job.input, sizeBytes);
  if (said === null) return null;
  // Some pictures' size is known to a decoder only; without it they are not copied.
  let end = 0;
  for (const stream of job.probe.beginnings.keys()) {
    end = Math.max(end, await endOf(job, { ...inputOf(job), withVideo: true }, `0:${stream}`));
  }
  return endsEarly(end, said.declaredSeconds, said.isWhole)
    ? `the file is incomplete: it ends at ${end.toFixed(1)} s of ${said.declaredSeconds.toFixed(1)} s`
    : null;
}

/** How much sound is missing, by the file's own word; empty if that is not known. */
async function missingSeconds(job: LookedAt): Promise<string> {
  // Of such a file that was cut off, ffprobe says how long the rest is.
  if (['asf', 'avi'].includes(job.probe.container.demuxer)) return '';
  const declared = job.probe.tracks[0].declaredSeconds ?? job.probe.durationSeconds ?? 0;
  const { streamIndex } = job.probe.tracks[0];
  const end = await endOf(job, inputOf(job), `0:${streamIndex}`).catch((error: unknown) => {
    if (error instanceof MediaFailure) return declared;
    throw error;
  });
  const missing = declared - end;
  return missing < 0.05 ? '' : `, ${missing.toFixed(1)} s of ${declared.toFixed(1)} s`;
}

/** Where tracks end: each is measured once, and not at all if a run has counted it. */
export class TrackEnds {
  readonly #job: Job;
  readonly #known = new Map<number, number>();
  readonly #delayed = new Map<number, boolean>();

  constructor(job: Job) {
    this.#job = job;
  }

  /** @param seconds as the run that made a file of the plan counted them; null if it did not */
  note({ track, trim }: OutputPlan, seconds: number | null): void {
    if (trim === null && seconds !== null) this.#known.set(track.streamIndex, seconds);
  }

  async of({ track }: OutputPlan): Promise<number> {
    let end = this.#known.get(track.streamIndex);
    if (end === undefined) {
      const ends: number[] = [];
      for (const { streamIndex } of partsOf(track)) {
        ends.push(await endOf(this.#job, inputOf(this.#job), `0:${streamIndex}`));
      }
      end = Math.max(...ends);
    }
    this.#known.set(track.streamIndex, end);
    return end;
  }

  /**
   * Whether a gap is only a delay of a decoder or demuxer: the track then ends that much later than
   * it declares (decisions A2a). Between the streams of a chained Ogg, ffmpeg's timestamps jump.
   */
  async isDelayed(plan: OutputPlan, file: Clock): Promise<boolean> {
    const { track } = plan;
    if (file.gapSeconds <= CLOCK_TOLERANCE_SECONDS || track.mixed !== undefined) return false;
    // Such a track changes in the middle, and is decoded no further than is wanted.
    if (this.#job.uniform !== undefined) return false;
    const isDelayed = this.#delayed.get(track.streamIndex) ?? (await this.#hasDelay(plan, file));
    this.#delayed.set(track.streamIndex, isDelayed);
    return isDelayed;
  }

  async #hasDelay(plan: OutputPlan, file: Clock): Promise<boolean> {
    const { track } = plan;
    if (this.#job.probe.container.demuxer === 'ogg') {
      const { isChained } = await import('./ogg/pages.ts');
      return isChained(this.#job.input);
    }
    if (track.declaredSeconds === null) return false;
    const { sourceSeconds, gapSeconds } = plan.trim === null ? file : await wholeClock(this.#job, plan);
    const gaps = gapSeconds - track.startSeconds;
    const beyond = (sourceSeconds ?? 0) - track.startSeconds - track.declaredSeconds;
    return gaps > CLOCK_TOLERANCE_SECONDS && Math.abs(beyond - gaps) <= CLOCK_TOLERANCE_SECONDS;
  }
}

type Clock = Pick<RenderedFile, 'sourceSeconds' | 'gapSeconds'>;

/** Decodes all of a track of which a part was wanted. */
async function wholeClock(job: Job, plan: OutputPlan): Promise<Clock> {
  const whole = { ...plan, trim: null };
  const { stderr } = await runOnInput(
    job,
    {
      inputs: inputsOf(job),
      graphs: filterGraphs(job, [{ plan: whole, gain: AS_IT_IS, last: [] }]),
      outputs: [{ muxer: 'null', options: ['-map', '[out0]'] }],
    },
    () => {},
  );
  return clockOf(job, { plan: whole, pcm: null }, stderr, 0);
}

/**
 * Where a stream ends on the source's clock, by its packets, seconds. One at a time: of several
 * ffmpeg 7 reports the earliest end, ffmpeg 5 the last.
 */
export async function endOf(job: LookedAt, input: CommandInput, stream: string): Promise<number> {
  const { outSeconds = 0 } = await runOnInput(
    job,
    {
      inputs: [input],
      outputs: [{ muxer: 'null', options: ['-map', stream, '-c', 'copy'] }],
    },
    () => {},
  );
  return outSeconds;
}
