/** Makes the files that were planned of one source, and says what they are by measuring them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaFailure } from './failure.ts';
import { inputOf, type Job, runOnInput } from './input-run.ts';
import type { Loudness } from './loudness/normalise.ts';
import { type NoteMaker, type NotePart, type RunChoice, wholeOf } from './notes/run.ts';
import { type Parallelism, renderWanted } from './parallel/render.ts';
import { bubbleBitrate, type OutputPlan, planRecording, VOICE_BUBBLE_BYTES, VOICE_MIN_KBPS } from './plan.ts';
import type { Probe } from './probe.ts';
import { progressReport } from './progress.ts';
import { type RenderedFile, render } from './render.ts';
import type { Rendition } from './rendition.ts';
import type { MediaTools } from './run.ts';
import { endsEarly, keepsClock } from './timeline.ts';
import { flvEnd, missingEnd } from './truncation.ts';

export interface ExtractOptions {
  readonly tools: MediaTools;
  /** A regular local file. */
  readonly input: string;
  readonly probe: Probe;
  readonly plan: OutputPlan;
  /** Where the output goes. */
  readonly outputPath: string;
  /** Folder for what is needed on the way, on the outputs' file system; default the output's own. It is left as it was. */
  readonly workspace?: string;
  /** A voice message of the same track and part, or a run of them: in the same decode, or at the same time over an idle core. */
  readonly voice?: { readonly plan: OutputPlan; readonly path: string; readonly run?: RunChoice };
  readonly signal: AbortSignal;
  /** Longest audio that is accepted, seconds: of the source, whatever part of it is wanted. */
  readonly maxAudioSeconds: number;
  /** Largest file that may be written; default 8 GiB. */
  readonly maxOutputBytes?: number;
  /** Where idle cores come from, for a long output or a voice message beside it; default none are used. */
  readonly parallel?: Parallelism;
  /** How much of the whole is done, 0 … 1, never going down. */
  readonly onProgress?: (fraction: number) => void;
  /** The phase that begins: a job that is normalised goes from the one to the other, any other stays in the first. */
  readonly onStep?: (step: 'extracting_audio' | 'normalizing_audio') => void;
}

interface ExtractedFile extends RenderedFile {
  /** Of its first sample, on the source's clock. */
  readonly startOffsetSeconds: number;
  /** ffmpeg's name: mp3, aac, flac, pcm_s16le … */
  readonly codec: string;
  readonly channels: number;
  readonly sampleRate: number;
  /** Whether it, or each note of a run, is small enough for phones to show a voice bubble. */
  readonly fitsVoiceBubble: boolean;
  /** The notes in the file; one unless it is a run. */
  readonly parts: readonly NotePart[];
}

export interface Extraction {
  readonly output: ExtractedFile;
  readonly voice: ExtractedFile | null;
  /** Where the chosen track ends on the source's clock, counted; the same whatever is made of it. */
  readonly sourceSeconds: number;
  /** What is missing of a file that was cut off and taken all the same; null where nothing is. */
  readonly truncated: string | null;
  /** null unless the plan asks for a loudness. */
  readonly loudness: Loudness | null;
}

const MINUTE = 60 * 1000;

const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 ** 3;

/**
 * @throws {MediaFailure} when the source is at fault; the signal's reason when aborted; any other error is worth
 * another try. Nothing is left behind then.
 */
export async function extractAudio(options: ExtractOptions): Promise<Extraction> {
  const { plan, voice, maxAudioSeconds, outputPath } = options;
  // Silence in front counts as well, and ffmpeg fills none of more than 2^31 samples.
  if (Math.max(plan.track.declaredSeconds ?? 0, plan.track.startSeconds) > maxAudioSeconds + 1) {
    throw new MediaFailure('INVALID_VIDEO', `the audio is longer than ${maxAudioSeconds} s`);
  }
  const scratch = await mkdtemp(join(options.workspace ?? dirname(outputPath), 'extract-'));
  const job: Job = {
    ...options,
    scratch,
    maxOutputBytes: options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
    // Encoders run at 40 to 500 times real time; slower than the audio itself is a machine that does not get on.
    wallLimitMs: 10 * MINUTE + (plan.track.declaredSeconds ?? maxAudioSeconds) * 1000,
  };
  const wanted: Rendition[] = [rendition(plan, outputPath)];
  if (voice !== undefined) {
    const made = isRun(voice.run) ? planRecording(voice.plan) : voice.plan;
    wanted.push(rendition(made, isRun(voice.run) ? join(scratch, 'recording') : voice.path));
  }
  try {
    const truncated = await truncationOf(job);
    if (truncated !== null && !plan.acceptTruncated) throw new MediaFailure('INVALID_VIDEO', truncated);
    return { ...(await extract(job, options, wanted)), truncated };
  } catch (error) {
    await Promise.all(wanted.map(({ path }) => rm(path, { force: true })));
    throw error;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function isRun(choice: RunChoice | undefined): choice is RunChoice {
  return choice !== undefined && (choice.split || choice.trimSilence);
}

function rendition(plan: OutputPlan, path: string): Rendition {
  return {
    plan,
    path,
    mode: plan.copy === null ? 'encode' : 'copy',
    bitrateKbps: plan.encode.bitrateKbps,
    gain: null,
    pcm: null,
  };
}

async function extract(
  job: Job,
  options: ExtractOptions,
  wanted: readonly Rendition[],
): Promise<Omit<Extraction, 'truncated'>> {
  const { plan, onStep } = options;
  const report = progressReport(plan.expectedSeconds, options.onProgress);
  onStep?.('extracting_audio');
  const normalised =
    plan.loudnessLufs === null
      ? null
      : await (await import('./loudness/normalise.ts')).normalise(job, wanted, plan.loudnessLufs, {
          report,
          parallel: options.parallel,
          onNormalise: () => onStep?.('normalizing_audio'),
        });
  const files =
    normalised?.files ??
    (await renderPlanned(
      job,
      wanted,
      options.parallel,
      report.phase(0, isRun(options.voice?.run) ? 0.5 : 0.95),
    ));

  const finished: RenderedFile[] = [];
  for (const [index, wish] of wanted.entries()) {
    const file = files[index];
    if (file === undefined) throw new Error('a run made fewer files than were asked for');
    finished.push(await settle(job, { ...wish, gain: normalised?.gain ?? null }, file));
  }
  const [output, voice] = finished;
  if (output === undefined) throw new Error('a run made no file');
  const counted = plan.trim === null ? output.sourceSeconds : null;
  const sourceSeconds = counted ?? (await endOfTrack(job, plan));
  report.done();
  return {
    output: describe(plan, output),
    voice:
      voice === undefined || options.voice === undefined
        ? null
        : await finishVoice(job, options.voice, voice, report.phase(0.5, 0.95)),
    sourceSeconds,
    loudness: normalised?.loudness ?? null,
  };
}

/** The voice message as it was rendered, or the run of notes of the recording that was. */
async function finishVoice(
  job: Job,
  { plan, path, run }: NonNullable<ExtractOptions['voice']>,
  made: RenderedFile,
  onSeconds: (seconds: number) => void,
): Promise<ExtractedFile> {
  if (!isRun(run)) return describe(plan, made);
  const { renderNotes } = await import('./notes/run.ts');
  const note: NoteMaker = async (pcm, target, bitrate) => {
    const seconds = pcm.samples / plan.encode.sampleRate;
    const wantedKbps = plan.encode.bubbleKbps ?? plan.encode.bitrateKbps ?? VOICE_MIN_KBPS;
    const wish: Rendition = {
      ...rendition(plan, target),
      mode: 'encode',
      bitrateKbps: bitrate === 'full' ? wantedKbps : Math.min(wantedKbps, bubbleBitrate(seconds)),
      pcm: { path: pcm.path, sourceSeconds: seconds, filledSeconds: made.filledSeconds },
    };
    const file = await renderAnew(job, wish, bitrate === 'full' ? onSeconds : undefined);
    return bitrate === 'full' ? file : fitBubble(job, wish, file, wantedKbps);
  };
  const { file, parts } = await renderNotes(job, made.path, run, note, path);
  return { ...describe(plan, file), fitsVoiceBubble: parts.every((part) => part.fitsVoiceBubble), parts };
}

/** Encodes again what turned out not to be what was asked for: a copy off the clock or with too high a bitrate, a voice message of the wrong size. */
async function settle(job: Job, wish: Rendition, made: RenderedFile): Promise<RenderedFile> {
  const { copy, encode } = wish.plan;
  if (made.copied) {
    const isAsked =
      made.isInForm &&
      (copy?.maxKbps == null || made.bitrateKbps <= copy.maxKbps) &&
      (copy?.maxBytes == null || made.sizeBytes <= copy.maxBytes);
    if (isAsked) {
      const sourceSeconds = made.sourceSeconds ?? (await endOfTrack(job, wish.plan));
      if (copyKeepsClock(wish.plan, made, sourceSeconds)) return { ...made, sourceSeconds };
    }
  }
  const file = made.copied ? await renderAnew(job, { ...wish, mode: 'encode' }) : made;
  return encode.bubbleKbps === null ? file : fitBubble(job, wish, file, encode.bubbleKbps);
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

/** How much of a voice bubble is used at the least where the bitrate was lowered for it (decisions A3). */
const BUBBLE_USE = 0.9;
/** Encodings besides the first, before one that is known to fit is made again. */
const MAX_FITTINGS = 2;
/** kbit/s between two bitrates that are tried: SILK spends a tenth more on noise for one of them. */
const BITRATE_STEP = 0.25;

/** The container's duration was wrong, or the encoder went over its bitrate or stayed under it: the size of what was made says better. */
async function fitBubble(
  job: Job,
  wish: Rendition,
  made: RenderedFile,
  wantedKbps: number,
): Promise<RenderedFile> {
  const lowest = bubbleBitrate(Number.POSITIVE_INFINITY);
  let file = made;
  let kbps = wish.bitrateKbps ?? wantedKbps;
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
    file = await renderAnew(job, { ...wish, mode: 'encode', bitrateKbps: kbps });
  }
  if (file.sizeBytes <= VOICE_BUBBLE_BYTES || kbps <= lowest) return file;
  return renderAnew(job, { ...wish, mode: 'encode', bitrateKbps: enough });
}

/** A container may lack what another one needs to hold the same packets, such as Opus in CAF without its header: those are encoded. */
async function renderPlanned(
  job: Job,
  wanted: readonly Rendition[],
  parallel: Parallelism | undefined,
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  try {
    return await renderWanted(job, wanted, parallel, onSeconds);
  } catch (error) {
    const isRefused = error instanceof MediaFailure && error.code === 'EXTRACTION_FAILED';
    if (!isRefused || wanted.every(({ mode }) => mode === 'encode')) throw error;
    const encoded = wanted.map((wish): Rendition => ({ ...wish, mode: 'encode' }));
    return render(job, encoded, onSeconds);
  }
}

async function renderAnew(
  job: Job,
  wish: Rendition,
  onSeconds: (seconds: number) => void = () => {},
): Promise<RenderedFile> {
  const [file] = await render(job, [wish], onSeconds);
  if (file === undefined) throw new Error('a run made no file');
  return file;
}

/** What is missing of a file that was cut off; null where it is whole, or nobody can tell. */
async function truncationOf(job: Job): Promise<string | null> {
  const { container, sizeBytes } = job.probe;
  const missing = await missingEnd(job.input, container, sizeBytes);
  if (missing !== null || container.demuxer !== 'flv') return missing;
  const said = await flvEnd(job.input, sizeBytes);
  if (said === null) return null;
  const end = await endOf(job, '0:v?', '0:a?');
  return endsEarly(end, said.declaredSeconds, said.isWhole)
    ? `the file is truncated: it ends at ${end.toFixed(1)} s of ${said.declaredSeconds.toFixed(1)} s`
    : null;
}

function endOfTrack(job: Job, { track }: OutputPlan): Promise<number> {
  return endOf(job, `0:${track.streamIndex}`);
}

/** Where streams end on the source's clock, by their packets, seconds. */
async function endOf(job: Job, ...streams: readonly string[]): Promise<number> {
  const { outSeconds = 0 } = await runOnInput(
    job,
    {
      inputs: [{ ...inputOf(job), withVideo: true }],
      outputs: [{ muxer: 'null', options: [...streams.flatMap((stream) => ['-map', stream]), '-c', 'copy'] }],
    },
    () => {},
  );
  return outSeconds;
}

function describe({ encode, track, trim, timeline }: OutputPlan, file: RenderedFile): ExtractedFile {
  const { encoder } = encode;
  const encodedCodec = { libmp3lame: 'mp3', libvorbis: 'vorbis', libopus: 'opus' }[encoder] ?? encoder;
  return {
    ...file,
    startOffsetSeconds: Math.max(trim?.startSeconds ?? 0, timeline === 'audio' ? track.startSeconds : 0),
    codec: file.copied ? track.codec : encodedCodec,
    channels: encode.channels,
    sampleRate: encode.sampleRate,
    fitsVoiceBubble: file.sizeBytes <= VOICE_BUBBLE_BYTES,
    parts: [wholeOf(file)],
  };
}
