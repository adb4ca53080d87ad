/** Makes the planned files of one source, and describes them by measuring them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MediaFailure } from './failure.ts';
import { type Job, onUniformSound, withMix } from './input-run.ts';
import type { Loudness } from './loudness/normalise.ts';
import { type Parallelism, renderWanted } from './parallel/render.ts';
import { bubbleBitrate, type OutputPlan, planRecording, type RunChoice, VOICE_MIN_KBPS } from './plan.ts';
import type { Probe } from './probe.ts';
import type { RenderedFile } from './render.ts';
import type { Rendition } from './rendition.ts';
import type { MediaTools } from './run.ts';
import { fitBubble, renderAnew, settle, TrackEnds, truncationOf, wholeOf } from './settle.ts';
import { soundingTracks } from './silence.ts';
import { progressReport } from './tool-output.ts';
import { partsOf, usableTracks } from './track-choice.ts';

type ProgressReport = ReturnType<typeof progressReport>;

interface WantedFile {
  readonly plan: OutputPlan;
  /** Where it is written; no two have the same name. */
  readonly path: string;
}

export interface ExtractOptions {
  readonly tools: MediaTools;
  /** A regular local file. */
  readonly input: string;
  readonly probe: Probe;
  /** The first one is audio; `sourceSeconds` is about its track. */
  readonly outputs: readonly [WantedFile, ...WantedFile[]];
  /** Temporary folder on the outputs' file system, left as found; default the first output's. */
  readonly workspace?: string;
  /** A voice message or a run of the first output's track and part, in its decode or another. */
  readonly voice?: WantedFile & { readonly run?: RunChoice };
  readonly signal: AbortSignal;
  /** Longest audio that is accepted, seconds: of the source, whatever part of it is wanted. */
  readonly maxAudioSeconds: number;
  /** Largest file that may be written, each; default 8 GiB. */
  readonly maxOutputBytes?: number;
  /** Requests disk bytes beyond the plans (docs/timeline.md, sound that changes); default: yes. */
  readonly makeRoom?: (bytes: number) => Promise<void>;
  /** Where idle cores come from, for a long output or several of them; default none are used. */
  readonly parallel?: Parallelism;
  /** How much of the whole is done, 0 … 1, never going down. */
  readonly onProgress?: (fraction: number) => void;
  /** The phase that begins: only a normalised job goes on to the second one. */
  readonly onStep?: (step: 'extracting_audio' | 'normalizing_audio') => void;
}

interface ExtractedFile extends RenderedFile {
  /** Of its first sample, on the source's clock. */
  readonly startOffsetSeconds: number;
  /** ffmpeg's name: mp3, aac, flac, pcm_s16le … */
  readonly codec: string;
  readonly channels: number;
  readonly sampleRate: number;
  /** Whether it, or each note of a run, is small enough for a voice bubble on phones. */
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
  /** Where the first output's track ends on the source's clock, counted: alike for any output. */
  readonly sourceSeconds: number;
  /** If an output is silent: the other tracks with sound, by their index, as far as is known. */
  readonly soundingTracks: readonly number[];
  /** The missing part of an accepted truncated file; null if it is whole. */
  readonly truncated: string | null;
}

const MINUTE = 60 * 1000;

const DEFAULT_MAX_OUTPUT_BYTES = 8 * 1024 ** 3;

/**
 * @throws {MediaFailure} when the source is unusable; the signal's reason when aborted; any other
 * error is worth a retry. No files are left then.
 */
export async function extractAudio(options: ExtractOptions): Promise<Extraction> {
  const { outputs, voice, maxAudioSeconds } = options;
  const [first] = outputs;
  const declared = outputs.map(({ plan }) => plan.track.declaredSeconds);
  // Silence in front counts as well, and ffmpeg fills no more than 2^31 samples.
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
    // Encoders run at 40 to 500 times real time: below real time the machine makes no progress.
    wallLimitMs: 10 * MINUTE + audioSeconds * 1000,
  };
  const wanted = outputs.map((output, nth) => requestOf(output, join(scratch, `recording-${nth}`)));
  const voiceRequest = voice && requestOf(voice, join(scratch, 'recording'));
  const all = [...wanted, ...(voiceRequest === undefined ? [] : [voiceRequest])];
  try {
    const truncated = await truncationOf(job);
    if (truncated !== null && !first.plan.acceptTruncated) {
      throw new MediaFailure(
        'INVALID_VIDEO',
        `${truncated}; upload it again, or set acceptTruncated to use the rest`,
      );
    }
    const report = progressReport(null, options.onProgress);
    options.onStep?.('extracting_audio');
    const plans = all.map(({ rendition }) => rendition.plan);
    const extraction = await onUniformSound(job, plans, (uniform) =>
      extract(uniform, { ...options, report }, wanted, voiceRequest),
    );
    return { ...extraction, truncated };
  } catch (error) {
    await Promise.all(all.map(({ path }) => rm(path, { force: true })));
    throw error;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** A file to make, and its plan. */
interface Request extends WantedFile {
  /** How a recording becomes the file; undefined if the rendition is the file itself. */
  readonly run: RunChoice | undefined;
  readonly rendition: Rendition;
}

/** @param recording where its recording is written, if it takes one */
function requestOf(
  { plan, path, run = { split: false, trimSilence: plan.trimSilence } }: WantedFile & { run?: RunChoice },
  recording: string,
): Request {
  return run.split || run.trimSilence
    ? { plan, path, run, rendition: rendition(planRecording(plan), recording) }
    : { plan, path, run: undefined, rendition: rendition(plan, path) };
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

/** Renditions made together: all with unchanged loudness, or a single normalised rendition. */
interface Stage {
  readonly renditions: readonly Rendition[];
  readonly loudnessLufs: number | null;
}

/** A levelled output against all others: it is measured, encoded and measured again. */
const LEVELLED_WEIGHT = 3;

/**
 * A levelled output has its own gain, a voice message the first one's; others share a decode, of
 * the source or of a mix.
 */
function stagesOf(wanted: readonly Rendition[], voice: Rendition | undefined): Stage[] {
  const withVoice = (rendition: Rendition): Rendition[] =>
    voice !== undefined && rendition === wanted[0] ? [rendition, voice] : [rendition];
  const plain = wanted.filter(({ plan }) => plan.loudnessLufs === null).flatMap(withVoice);
  const levelled = wanted.filter(({ plan }) => plan.loudnessLufs !== null);
  const together = [plain.filter((each) => !isMix(each)), plain.filter(isMix)];
  return [
    ...together
      .filter((renditions) => renditions.length > 0)
      .map((renditions) => ({ renditions, loudnessLufs: null })),
    ...levelled.map((each) => ({ renditions: withVoice(each), loudnessLufs: each.plan.loudnessLufs })),
  ];
}

function isMix({ plan: { track } }: Rendition): boolean {
  return track.mixed !== undefined;
}

interface Made {
  readonly file: RenderedFile;
  readonly loudness: Loudness | null;
}

async function extract(
  job: Job,
  options: ExtractOptions & { readonly report: ProgressReport },
  wanted: readonly Request[],
  voice: Request | undefined,
): Promise<Omit<Extraction, 'truncated'>> {
  const { outputs, report } = options;
  const ends = new TrackEnds(job);
  const made = new Map<Rendition, Made>();
  const stages = stagesOf(
    wanted.map(({ rendition }) => rendition),
    voice?.rendition,
  );
  const runs = [...wanted, ...(voice === undefined ? [] : [voice])].filter(({ run }) => run !== undefined);
  const weights = stages.map(({ loudnessLufs }) => (loudnessLufs === null ? 1 : LEVELLED_WEIGHT));
  const whole = weights.reduce((sum, weight) => sum + weight, 0) / (runs.length > 0 ? 0.5 : 1);
  const mixJob = await jobOfMix(job, stages);
  let before = 0;
  for (const [nth, stage] of stages.entries()) {
    const after = before + (weights[nth] ?? 0) / whole;
    const expected = stage.renditions.map(({ plan }) => plan.expectedSeconds ?? 0);
    const part = report.part(before, after, Math.max(...expected) || null);
    const source = stage.renditions.some(isMix) ? mixJob : job;
    await renderStage(source, stage, { ...options, report: part, ends }, made);
    before = after;
  }
  const finished = async (request: Request): Promise<ExtractedFile> => {
    const found = made.get(request.rendition);
    if (found === undefined) throw new Error('a run made fewer files than were asked for');
    const nth = runs.indexOf(request);
    const part = report.part(
      0.5 + nth / runs.length / 2,
      0.5 + (nth + 1) / runs.length / 2,
      request.plan.expectedSeconds,
    );
    return finish(job, request, found, part);
  };
  const files: ExtractedFile[] = [];
  for (const request of wanted) files.push(await finished(request));
  const extraction = {
    files,
    voice: voice === undefined ? null : await finished(voice),
    sourceSeconds: await ends.of(outputs[0].plan),
    soundingTracks: await tracksBeside(job, files, outputs),
  };
  report.done();
  return extraction;
}

/** Where a caller finds the sound that an output has not. */
async function tracksBeside(
  job: Job,
  files: readonly ExtractedFile[],
  outputs: ExtractOptions['outputs'],
): Promise<number[]> {
  const silent = outputs.filter((_, nth) => files[nth]?.warnings.includes('SILENT'));
  const heard = silent.flatMap(({ plan }) => partsOf(plan.track).map(({ index }) => index));
  const others = usableTracks(job.probe).filter(({ index }) => !heard.includes(index));
  return silent.length === 0 || others.length === 0 ? [] : soundingTracks(job, others);
}

/** The job whose source is the mix of tracks that is asked for; otherwise the job itself. */
async function jobOfMix(job: Job, stages: readonly Stage[]): Promise<Job> {
  const plans = stages.flatMap(({ renditions }) => renditions.filter(isMix).map(({ plan }) => plan));
  const [first] = plans;
  return first === undefined ? job : withMix(job, first.track, plans);
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
  const {
    files,
    renditions: rendered,
    loudness,
  } = loudnessLufs === null
    ? {
        files: await renderPlanned(job, renditions, parallel, report.phase(0, 0.95)),
        ...{ renditions, loudness: null },
      }
    : await (await import('./loudness/normalise.ts')).normalise(job, renditions, loudnessLufs, {
        report,
        parallel,
        onNormalise: () => onStep?.('normalizing_audio'),
      });
  for (const [nth, { plan }] of renditions.entries()) ends.note(plan, files[nth]?.sourceSeconds ?? null);
  for (const [nth, request] of renditions.entries()) {
    const file = files[nth];
    if (file === undefined) continue;
    const settled = await settle(job, rendered[nth] ?? request, file, ends);
    ends.note(request.plan, settled.sourceSeconds);
    made.set(request, { loudness, file: settled });
  }
}

/** The rendered file, or the notes made of its recording. */
async function finish(
  job: Job,
  { plan, path, run }: Request,
  { file: made, loudness }: Made,
  report: ProgressReport,
): Promise<ExtractedFile> {
  if (run === undefined) return describe(plan, made, loudness);
  const onSeconds = report.phase(0, 0.9);
  const { encode } = plan;
  const mustFit = run.split || encode.bubbleKbps !== null;
  const { renderNotes } = await import('./notes/run.ts');
  const { file, parts } = await renderNotes(job, made.path, run, path, async (pcm, target, bitrate) => {
    const seconds = pcm.samples / encode.sampleRate;
    const wantedKbps = encode.bubbleKbps ?? encode.bitrateKbps ?? VOICE_MIN_KBPS;
    const isFitted = mustFit && bitrate === 'fitting';
    const request: Rendition = {
      ...rendition(plan, target),
      mode: 'encode',
      bitrateKbps: isFitted
        ? Math.min(wantedKbps, bubbleBitrate(seconds))
        : (encode.bubbleKbps ?? encode.bitrateKbps),
      pcm: { path: pcm.path, sourceSeconds: seconds, filledSeconds: made.filledSeconds, gapSeconds: 0 },
    };
    const file = await renderAnew(job, request, isFitted ? undefined : onSeconds);
    return isFitted ? fitBubble(job, request, file, wantedKbps) : file;
  });
  return {
    ...describe(plan, file, loudness),
    warnings: made.warnings,
    fitsVoiceBubble: parts.every((part) => part.fitsVoiceBubble),
    parts,
  };
}

/** What a copy cannot hold in its container, such as Opus in CAF without its header, is encoded. */
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
    const encoded = wanted.map((request): Rendition => ({ ...request, mode: 'encode' }));
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
