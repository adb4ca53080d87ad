/** Makes the files that were planned of one source, and says what they are by measuring them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaFailure } from './failure.ts';
import { type Job, runOnInput } from './input-run.ts';
import { type Loudness, normalise } from './loudness/normalise.ts';
import { type Parallelism, renderWanted } from './parallel/render.ts';
import { bubbleBitrate, type OutputPlan, VOICE_BUBBLE_BYTES } from './plan.ts';
import type { Probe } from './probe.ts';
import { progressReport } from './progress.ts';
import { type RenderedFile, render } from './render.ts';
import type { Rendition } from './rendition.ts';
import type { MediaTools } from './run.ts';

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
  /** A voice message of the same track and part: in the same decode, or at the same time over an idle core. */
  readonly voice?: { readonly plan: OutputPlan; readonly path: string };
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
  /** ffmpeg's name: mp3, aac, flac, pcm_s16le … */
  readonly codec: string;
  readonly channels: number;
  readonly sampleRate: number;
  /** Whether it is small enough for phones to show a voice bubble. */
  readonly fitsVoiceBubble: boolean;
}

export interface Extraction {
  readonly output: ExtractedFile;
  readonly voice: ExtractedFile | null;
  /** How long the chosen track is, counted; null when only a part of it was read. */
  readonly sourceSeconds: number | null;
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
  if ((plan.track.declaredSeconds ?? 0) > maxAudioSeconds + 1) {
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
  if (voice !== undefined) wanted.push(rendition(voice.plan, voice.path));
  try {
    return await extract(job, options, wanted);
  } catch (error) {
    await Promise.all(wanted.map(({ path }) => rm(path, { force: true })));
    throw error;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
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

async function extract(job: Job, options: ExtractOptions, wanted: readonly Rendition[]): Promise<Extraction> {
  const { plan, onStep } = options;
  const report = progressReport(plan.expectedSeconds, options.onProgress);
  onStep?.('extracting_audio');
  const normalised =
    plan.loudnessLufs === null
      ? null
      : await normalise(job, wanted, plan.loudnessLufs, {
          report,
          parallel: options.parallel,
          onNormalise: () => onStep?.('normalizing_audio'),
        });
  const files =
    normalised?.files ?? (await renderPlanned(job, wanted, options.parallel, report.phase(0, 0.95)));

  const finished: RenderedFile[] = [];
  for (const [index, wish] of wanted.entries()) {
    const file = files[index];
    if (file === undefined) throw new Error('a run made fewer files than were asked for');
    finished.push(await settle(job, { ...wish, gain: normalised?.gain ?? null }, file));
  }
  const [output, voice] = finished;
  if (output === undefined) throw new Error('a run made no file');
  await refuseTruncated(job, plan, output.durationSeconds);
  report.done();
  return {
    output: describe(plan, output),
    voice: voice === undefined || options.voice === undefined ? null : describe(options.voice.plan, voice),
    sourceSeconds: plan.trim === null ? output.sourceSeconds : null,
    loudness: normalised?.loudness ?? null,
  };
}

/** Encodes again what turned out not to be what was asked for: a copy with too high a bitrate, a voice message too large. */
async function settle(job: Job, wish: Rendition, made: RenderedFile): Promise<RenderedFile> {
  const { copy, encode } = wish.plan;
  let file = made;
  const isOver =
    (copy?.maxKbps != null && file.bitrateKbps > copy.maxKbps) ||
    (copy?.maxBytes != null && file.sizeBytes > copy.maxBytes);
  if (file.copied && isOver) file = await renderAnew(job, { ...wish, mode: 'encode' });
  if (file.copied || !encode.fitsBubble) return file;

  // The container's duration was wrong, or the encoder went over its bitrate.
  let kbps = encode.bitrateKbps ?? 0;
  const fitting = bubbleBitrate(file.durationSeconds);
  const lowest = bubbleBitrate(Number.POSITIVE_INFINITY);
  while (file.sizeBytes > VOICE_BUBBLE_BYTES && kbps > lowest) {
    const scaled = Math.floor(Math.min(kbps - 1, (kbps * VOICE_BUBBLE_BYTES) / file.sizeBytes));
    kbps = kbps > fitting ? fitting : Math.max(lowest, scaled);
    file = await renderAnew(job, { ...wish, mode: 'encode', bitrateKbps: kbps });
  }
  return file;
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

async function renderAnew(job: Job, wish: Rendition): Promise<RenderedFile> {
  const [file] = await render(job, [wish], () => {});
  if (file === undefined) throw new Error('a run made no file');
  return file;
}

/** Shorter than the container says by more than max(1 s, 2 %) is corrupt (decisions A7): ffmpeg ends such a file with exit code 0. */
async function refuseTruncated(job: Job, plan: OutputPlan, countedSeconds: number): Promise<void> {
  const { declaredSeconds, declaredForFile } = plan.track;
  if (declaredSeconds === null || plan.expectedSeconds === null) return;
  const isShort = (counted: number, declared: number) => declared - counted > Math.max(1, declared * 0.02);
  if (!isShort(countedSeconds, plan.expectedSeconds)) return;
  // Where only the whole file has a duration, another track may be the one that is as long as that.
  if (declaredForFile && !isShort(await endOfFile(job), declaredSeconds)) return;
  throw new MediaFailure(
    'INVALID_VIDEO',
    `the file is truncated: ${countedSeconds.toFixed(1)} s of ${plan.expectedSeconds.toFixed(1)} s of audio are there`,
  );
}

async function endOfFile(job: Job): Promise<number> {
  const { outSeconds = 0 } = await runOnInput(
    job,
    {
      inputs: [{ file: job.input, demuxer: job.probe.container.demuxer, withVideo: true }],
      outputs: [{ muxer: 'null', options: ['-map', '0:v?', '-map', '0:a?', '-c', 'copy'] }],
    },
    () => {},
  );
  return outSeconds;
}

function describe({ encode, track }: OutputPlan, file: RenderedFile): ExtractedFile {
  const { encoder } = encode;
  const encodedCodec = { libmp3lame: 'mp3', libvorbis: 'vorbis', libopus: 'opus' }[encoder] ?? encoder;
  return {
    ...file,
    codec: file.copied ? track.codec : encodedCodec,
    channels: encode.channels,
    sampleRate: encode.sampleRate,
    fitsVoiceBubble: file.sizeBytes <= VOICE_BUBBLE_BYTES,
  };
}
