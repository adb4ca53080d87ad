/** Makes the files that were planned of one source, and says what they are by measuring them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaFailure } from './failure.ts';
import { type Job, onUniformSound } from './input-run.ts';
import type { Loudness } from './loudness/normalise.ts';
import { type Parallelism, renderWanted } from './parallel/render.ts';
import { bubbleBitrate, type OutputPlan, planRecording, type RunChoice, VOICE_MIN_KBPS } from './plan.ts';
import type { Probe } from './probe.ts';
import type { RenderedFile } from './render.ts';
import type { Rendition } from './rendition.ts';
import type { MediaTools } from './run.ts';
import { fitBubble, renderAnew, settle, TrackEnds, truncationOf, wholeOf } from './settle.ts';
import { progressReport } from './tool-output.ts';

type ProgressReport = ReturnType<typeof progressReport>;

interface WantedFile {
  readonly plan: OutputPlan;
  /** Where it goes; no two have the same name. */
  readonly path: string;
}

export interface ExtractOptions {
  readonly tools: MediaTools;
  /** A regular local file. */
  readonly input: string;
  readonly probe: Probe;
  /** The first is one of audio; its track is the one that `sourceSeconds` is told of. */
  readonly outputs: readonly [WantedFile, ...WantedFile[]];
  /** Folder for what is needed on the way, on the outputs' file system; default that of the first output. It is left as it was. */
  readonly workspace?: string;
  /** A voice message of the same track and part as the first output, or a run of them: in the same decode, or at the same time over an idle core. */
  readonly voice?: WantedFile & { readonly run?: RunChoice };
  readonly signal: AbortSignal;
  /** Longest audio that is accepted, seconds: of the source, whatever part of it is wanted. */
  readonly maxAudioSeconds: number;
  /** Largest file that may be written, each; default 8 GiB. */
  readonly maxOutputBytes?: number;
  /** Asks for so many bytes on the disk that the plans do not tell of (docs/timeline.md, sound that changes); default they are taken. */
  readonly makeRoom?: (bytes: number) => Promise<void>;
  /** Where idle cores come from, for a long output or several of them; default none are used. */
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
  readonly parts: readonly ReturnType<typeof wholeOf>[];
  /** null unless the plan asks for a loudness. */
  readonly loudness: Loudness | null;
}

export interface Extraction {
  /** In the order of the outputs. */
  readonly files: readonly ExtractedFile[];
  readonly voice: ExtractedFile | null;
  /** Where the first output's track ends on the source's clock, counted; the same whatever is made of it. */
  readonly sourceSeconds: number;
  /** What is missing of a file that was cut off and taken all the same; null where nothing is. */
  readonly truncated: string | null;
}

const MINUTE = 60 * 1000;

const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 ** 3;

/**
 * @throws {MediaFailure} when the source is at fault; the signal's reason when aborted; any other error is worth
 * another try. Nothing is left behind then.
 */
export async function extractAudio(options: ExtractOptions): Promise<Extraction> {
  const { outputs, voice, maxAudioSeconds } = options;
  const [first] = outputs;
  const declared = outputs.map(({ plan }) => plan.track.declaredSeconds);
  // Silence in front counts as well, and ffmpeg fills none of more than 2^31 samples.
  const ends = outputs.map(({ plan: { track } }) => Math.max(track.declaredSeconds ?? 0, track.startSeconds));
  if (ends.some((seconds) => seconds > maxAudioSeconds + 1)) {
    throw new MediaFailure('INVALID_VIDEO', `the audio is longer than ${maxAudioSeconds} s`);
  }
  const scratch = await mkdtemp(join(options.workspace ?? dirname(first.path), 'extract-'));
  const audioSeconds = declared.reduce<number>((sum, seconds) => sum + (seconds ?? maxAudioSeconds), 0);
  const job: Job = {
    ...options,
    scratch,
    maxOutputBytes: options.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES,
    // Encoders run at 40 to 500 times real time; slower than the audio itself is a machine that does not get on.
    wallLimitMs: 10 * MINUTE + audioSeconds * 1000,
  };
  const wanted = outputs.map(({ plan, path }) => rendition(plan, path));
  const voiceWish = voice && voiceRendition(voice, scratch);
  const all = [...wanted, ...(voiceWish === undefined ? [] : [voiceWish])];
  try {
    const truncated = await truncationOf(job);
    if (truncated !== null && !first.plan.acceptTruncated) throw new MediaFailure('INVALID_VIDEO', truncated);
    const report = progressReport(null, options.onProgress);
    options.onStep?.('extracting_audio');
    const plans = all.map(({ plan }) => plan);
    const extraction = await onUniformSound(job, plans, (uniform) =>
      extract(uniform, { ...options, report }, wanted, voiceWish),
    );
    return { ...extraction, truncated };
  } catch (error) {
    await Promise.all(all.map(({ path }) => rm(path, { force: true })));
    throw error;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function isRun(choice: RunChoice | undefined): choice is RunChoice {
  return choice !== undefined && (choice.split || choice.trimSilence);
}

function voiceRendition(
  { plan, path, run }: NonNullable<ExtractOptions['voice']>,
  scratch: string,
): Rendition {
  return isRun(run) ? rendition(planRecording(plan), join(scratch, 'recording')) : rendition(plan, path);
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

/** Renditions that are made together: all whose loudness stays as it is, or one that is levelled. */
interface Stage {
  readonly renditions: readonly Rendition[];
  readonly loudnessLufs: number | null;
}

/** What a levelled output takes of the whole beside what all others take: it is measured, encoded and measured again. */
const LEVELLED_WEIGHT = 3;

/** A levelled output has a gain of its own, which the voice message shares with the first: the others are one decode. */
function stagesOf(wanted: readonly Rendition[], voice: Rendition | undefined): Stage[] {
  const withVoice = (rendition: Rendition): Rendition[] =>
    voice !== undefined && rendition === wanted[0] ? [rendition, voice] : [rendition];
  const plain = wanted.filter(({ plan }) => plan.loudnessLufs === null).flatMap(withVoice);
  const levelled = wanted.filter(({ plan }) => plan.loudnessLufs !== null);
  return [
    ...(plain.length === 0 ? [] : [{ renditions: plain, loudnessLufs: null }]),
    ...levelled.map((each) => ({ renditions: withVoice(each), loudnessLufs: each.plan.loudnessLufs })),
  ];
}

interface Made {
  readonly file: RenderedFile;
  readonly loudness: Loudness | null;
}

async function extract(
  job: Job,
  options: ExtractOptions & { readonly report: ProgressReport },
  wanted: readonly Rendition[],
  voiceWish: Rendition | undefined,
): Promise<Omit<Extraction, 'truncated'>> {
  const { voice, outputs, report } = options;
  const ends = new TrackEnds(job);
  const made = new Map<Rendition, Made>();
  const stages = stagesOf(wanted, voiceWish);
  const weights = stages.map(({ loudnessLufs }) => (loudnessLufs === null ? 1 : LEVELLED_WEIGHT));
  const whole = weights.reduce((sum, weight) => sum + weight, 0) / (isRun(voice?.run) ? 0.5 : 1);
  let before = 0;
  for (const [nth, stage] of stages.entries()) {
    const after = before + (weights[nth] ?? 0) / whole;
    const expected = stage.renditions.map(({ plan }) => plan.expectedSeconds ?? 0);
    const part = report.part(before, after, Math.max(...expected) || null);
    await renderStage(job, stage, { ...options, report: part, ends }, made);
    before = after;
  }
  const done = (wish: Rendition): Made => {
    const found = made.get(wish);
    if (found === undefined) throw new Error('a run made fewer files than were asked for');
    return found;
  };
  const extraction = {
    files: wanted.map((wish) => describe(wish.plan, done(wish).file, done(wish).loudness)),
    voice:
      voiceWish === undefined || voice === undefined
        ? null
        : await finishVoice(
            job,
            voice,
            done(voiceWish).file,
            report.part(0.5, 1, voice.plan.expectedSeconds),
          ),
    sourceSeconds: await ends.of(outputs[0].plan),
  };
  report.done();
  return extraction;
}

interface StageOptions extends Pick<ExtractOptions, 'parallel' | 'onStep'> {
  readonly report: ProgressReport;
  readonly ends: TrackEnds;
}

/** Adds to `made`. */
async function renderStage(
  job: Job,
  { renditions, loudnessLufs }: Stage,
  { parallel, onStep, report, ends }: StageOptions,
  made: Map<Rendition, Made>,
): Promise<void> {
  const { files, gain, loudness } =
    loudnessLufs === null
      ? {
          files: await renderPlanned(job, renditions, parallel, report.phase(0, 0.95)),
          ...{ gain: null, loudness: null },
        }
      : await (await import('./loudness/normalise.ts')).normalise(job, renditions, loudnessLufs, {
          report,
          parallel,
          onNormalise: () => onStep?.('normalizing_audio'),
        });
  for (const [nth, { plan }] of renditions.entries()) ends.note(plan, files[nth]?.sourceSeconds ?? null);
  for (const [nth, wish] of renditions.entries()) {
    const rendered = files[nth];
    if (rendered === undefined) continue;
    const file = await settle(job, { ...wish, gain }, rendered, ends);
    ends.note(wish.plan, file.sourceSeconds);
    made.set(wish, { loudness, file });
  }
}

/** The voice message as it was rendered, or the run of notes of the recording that was. */
async function finishVoice(
  job: Job,
  { plan, path, run }: NonNullable<ExtractOptions['voice']>,
  made: RenderedFile,
  report: ProgressReport,
): Promise<ExtractedFile> {
  if (!isRun(run)) return describe(plan, made, null);
  const onSeconds = report.phase(0, 0.9);
  const { renderNotes } = await import('./notes/run.ts');
  const { file, parts } = await renderNotes(job, made.path, run, path, async (pcm, target, bitrate) => {
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
  });
  return {
    ...describe(plan, file, null),
    fitsVoiceBubble: parts.every((part) => part.fitsVoiceBubble),
    parts,
  };
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
    return renderWanted(job, encoded, undefined, onSeconds);
  }
}

function describe(
  { encode, track, trim, timeline }: OutputPlan,
  file: RenderedFile,
  loudness: Loudness | null,
): ExtractedFile {
  const { encoder } = encode;
  const part = wholeOf(file);
  const encodedCodec = { libmp3lame: 'mp3', libvorbis: 'vorbis', libopus: 'opus' }[encoder] ?? encoder;
  return {
    ...file,
    startOffsetSeconds: Math.max(trim?.startSeconds ?? 0, timeline === 'audio' ? track.startSeconds : 0),
    codec: file.copied ? track.codec : encodedCodec,
    channels: encode.channels,
    sampleRate: encode.sampleRate,
    fitsVoiceBubble: part.fitsVoiceBubble,
    parts: [part],
    loudness,
  };
}
