/** One run of ffmpeg that copies or encodes files of a source, with one decode of each track. */
import { rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Command, CommandOutput } from './command.ts';
import { MediaFailure } from './failure.ts';
import { decodedFrom } from './graph.ts';
import { EmptyOutputs, type Job, runOnInput } from './input-run.ts';
import { type Heard, hasSound, heardOf, peakFilter, UNHEARD } from './mixing.ts';
import type { OutputPlan } from './plan.ts';
import { isPiped, type Rendition, renditionCommand } from './rendition.ts';
import { CLOCK_TOLERANCE_SECONDS, filledSamples } from './timeline.ts';
import { decodedSamples, outputStatistics } from './tool-output.ts';

type TrackStatistics = NonNullable<ReturnType<typeof outputStatistics>>;

export interface RenderedFile extends Heard {
  readonly path: string;
  readonly sizeBytes: number;
  /** Counted from samples or packets. */
  readonly durationSeconds: number;
  /** Where the track ends on the source's clock; null for some copies: {@link endOfCopy}. */
  readonly sourceSeconds: number | null;
  /** Silence that was inserted. */
  readonly filledSeconds: number;
  /** Gaps between its samples, by their timestamps, filled or not. */
  readonly gapSeconds: number;
  /** What a copy's packets hold, whatever their timestamps; otherwise the duration. */
  readonly heldSeconds: number;
  readonly packets: number;
  /** Measured from the packets. */
  readonly bitrateKbps: number;
  readonly copied: boolean;
  /** Whether a voice note has the form that all phones play; other files have no form to keep. */
  readonly isInForm: boolean;
  /** Of a copy: whether the run that made it heard sound in it; missing if it did not listen. */
  readonly sounds?: boolean | undefined;
}

/** Samples in a packet of AAC-LC, which is what ffmpeg's encoder makes. */
const AAC_FRAME_SAMPLES = 1024;

/**
 * @param onSeconds how far the output has come.
 * @returns the files in the order of the renditions.
 */
export async function render(
  job: Job,
  renditions: readonly Rendition[],
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  const made = renditions.map((rendition) =>
    isVoice(rendition)
      ? { ...rendition, path: join(job.scratch, `unpacked-${basename(rendition.path)}`) }
      : rendition,
  );
  const { places, ...command } = await renditionCommand(job, made);
  const listener = listenerOf(job, renditions);
  const peaks = await Promise.all(
    renditions.map(async ({ plan: { samplesPerPixel } }) =>
      samplesPerPixel === null ? null : new (await import('./peaks.ts')).Peaks(samplesPerPixel),
    ),
  );
  const takePcm = (pcm: Buffer): void => {
    for (const each of peaks) each?.push(pcm);
  };
  const run = (outputs: Command['outputs']) =>
    runOnInput(job, { ...command, outputs }, onSeconds, renditions.some(isPiped) ? takePcm : undefined);
  const running =
    listener === undefined
      ? run(command.outputs)
      : run([...command.outputs, listener]).catch((error) => {
          // A copy needs no decoder.
          if (error instanceof MediaFailure) return run(command.outputs);
          throw error;
        });
  const ran = await running.catch(emptyOf);
  if (ran instanceof EmptyOutputs) {
    const isEmpty = renditions.map((_, nth) => ran.outputs.includes(places[nth]?.output ?? nth));
    return renderBeside(job, renditions, isEmpty, onSeconds);
  }
  const { stderr, outSeconds } = ran;
  // For several files it is the end of the longest.
  const endSeconds = renditions.length === 1 ? outSeconds : undefined;
  const files: RenderedFile[] = [];
  for (const [nth, rendition] of renditions.entries()) {
    const { output, clock } = places[nth] ?? { output: nth, clock: 0 };
    const statistics = outputStatistics(stderr, output);
    const leadSamples = missingLead(rendition, statistics);
    if (leadSamples > 0) {
      files.push(...(await render(job, [{ ...rendition, leadSamples }], () => {})));
      continue;
    }
    const form = isVoice(rendition)
      ? await packed(made[nth]?.path ?? '', rendition, statistics?.samples, job.signal)
      : IN_FORM;
    await peaks[nth]?.write(rendition.path, rendition.plan.encode.sampleRate);
    const counts = statistics && { ...statistics, ...form.counts };
    const file = await measureRendition(job, rendition, counts, endSeconds);
    const onClock =
      rendition.mode === 'copy'
        ? { sourceSeconds: endOfCopy(job, endSeconds), filledSeconds: 0, gapSeconds: 0 }
        : clockOf(job, rendition, stderr, file.durationSeconds, clock);
    const isDecoded = rendition.mode === 'encode' && rendition.pcm === null;
    const heard = isDecoded ? heardOf(rendition.plan, stderr, clock) : UNHEARD;
    const sounds = listener && hasSound(stderr, 0);
    files.push({ ...file, ...onClock, ...heard, isInForm: form.isInForm, sounds });
  }
  return files;
}

/** Seconds. Such a copy is decoded in the run that makes it, because another start takes longer. */
const HEARD_AT_ONCE_SECONDS = 30;

/** Only if the end that ffmpeg reports stays the same, or is not used. */
function listenerOf({ probe }: Job, renditions: readonly Rendition[]): CommandOutput | undefined {
  const [first, ...others] = renditions;
  if (first === undefined || others.length > 0 || first.mode === 'encode') return undefined;
  const { plan } = first;
  const isShort = (plan.expectedSeconds ?? Number.POSITIVE_INFINITY) <= HEARD_AT_ONCE_SECONDS;
  const keepsEnd = probe.container.demuxer === 'mov' || plan.format.codec === 'opus';
  if (plan.trim !== null || !isShort || !keepsEnd) return undefined;
  const options = ['-map', `0:${plan.track.streamIndex}`, '-filter:a', peakFilter(0)];
  return { muxer: 'null', options };
}

function emptyOf(error: unknown): EmptyOutputs {
  if (error instanceof EmptyOutputs) return error;
  throw error;
}

/** Makes the others again. Silence has no words, so that a transcript may be empty. */
async function renderBeside(
  job: Job,
  renditions: readonly Rendition[],
  isEmpty: readonly boolean[],
  onSeconds: (seconds: number) => void,
): Promise<RenderedFile[]> {
  for (const [nth, { plan }] of renditions.entries()) {
    if (isEmpty[nth] && plan.formatName !== 'transcript') throw emptiness(plan);
  }
  const others = renditions.filter((_, nth) => !isEmpty[nth]);
  const made = others.length === 0 ? [] : await render(job, others, onSeconds);
  const empty = {
    sizeBytes: 0,
    ...NOTHING,
    sourceSeconds: null,
    filledSeconds: 0,
    gapSeconds: 0,
    ...UNHEARD,
  };
  return renditions.flatMap((rendition, nth): RenderedFile[] =>
    isEmpty[nth]
      ? [{ path: rendition.path, ...empty, isInForm: true }]
      : made.slice(others.indexOf(rendition), others.indexOf(rendition) + 1),
  );
}

function isVoice({ plan }: Rendition): boolean {
  return plan.formatName === 'voice';
}

interface Form {
  readonly isInForm: boolean;
  readonly counts?: Pick<TrackStatistics, 'packets' | 'bytes'>;
}

const IN_FORM: Form = { isInForm: true };

/**
 * Makes a voice note of ffmpeg's output.
 * @param samples that were encoded: ffmpeg's granule positions may be off by a sample of 16 kHz
 */
async function packed(
  from: string,
  { path: to, plan: { encode } }: Rendition,
  samples: number | undefined,
  signal: AbortSignal,
): Promise<Form> {
  const [{ packVoiceNote }, { BrokenOgg }] = await Promise.all([
    import('./ogg/voice-form.ts'),
    import('./ogg/pages.ts'),
  ]);
  try {
    const { isNative, packets, bytes } = await packVoiceNote(from, to, {
      samples: samples && (samples * OPUS_RATE) / encode.sampleRate,
      signal,
    });
    if (isNative || samples !== undefined) {
      await rm(from);
      return { isInForm: isNative, counts: { packets, bytes } };
    }
  } catch (error) {
    if (!(error instanceof BrokenOgg) || samples !== undefined) throw error;
  }
  // A copy of packets of another kind, or with gaps: it is encoded.
  await rename(from, to);
  return { isInForm: false };
}

/** An audible gap in an MP4's last packet (128 ms at 8 kHz): only the first encoding shows it. */
function missingLead(
  { plan: { format, encode }, mode, leadSamples = 0 }: Rendition,
  statistics: TrackStatistics | undefined,
): number {
  if (format.muxer !== 'ipod' || mode === 'copy' || leadSamples > 0) return 0;
  const rest = (statistics?.samples ?? 0) % AAC_FRAME_SAMPLES;
  const missing = rest === 0 ? 0 : AAC_FRAME_SAMPLES - rest;
  return missing > CLOCK_TOLERANCE_SECONDS * encode.sampleRate ? missing : 0;
}

/**
 * Where a copied track ends on the source's clock, by the end of its run. Null except in MP4 and
 * MOV: other timestamps are rounded, by each output in its own way.
 */
function endOfCopy({ probe }: Job, endSeconds: number | undefined): number | null {
  return probe.container.demuxer === 'mov' ? (endSeconds ?? null) : null;
}

/**
 * How far a run came on the source's clock, and the silence that it inserted.
 * @param clock the rendition's number in the run's graph
 */
export function clockOf(
  job: Pick<Job, 'uniform'>,
  { plan, pcm }: Pick<Rendition, 'plan' | 'pcm'>,
  stderr: string,
  durationSeconds: number,
  clock = 0,
): Pick<RenderedFile, 'filledSeconds' | 'gapSeconds'> & { sourceSeconds: number } {
  if (pcm !== null) {
    const { sourceSeconds, filledSeconds, gapSeconds } = pcm;
    return { sourceSeconds, filledSeconds, gapSeconds };
  }
  const { track, timeline } = plan;
  const samples = decodedSamples(stderr, decodedFrom(job, track));
  if (samples === undefined) return { sourceSeconds: durationSeconds, filledSeconds: 0, gapSeconds: 0 };
  const missing = filledSamples(stderr, clock) / track.sampleRate;
  return {
    sourceSeconds: samples / track.sampleRate + missing,
    filledSeconds: timeline === 'source' ? missing : 0,
    gapSeconds: missing,
  };
}

/**
 * @param endSeconds where the run that made only this file ended, on the source's clock
 * @throws {MediaFailure} when the file is empty but should not be, or exceeds the job's limits
 */
export async function measureRendition(
  job: Job,
  { plan, path, mode, leadSamples = 0 }: Rendition,
  statistics: TrackStatistics | undefined,
  endSeconds?: number,
): Promise<Omit<RenderedFile, keyof ReturnType<typeof clockOf> | 'isInForm' | keyof Heard>> {
  const { size: sizeBytes } = await stat(path);
  if (statistics === undefined || statistics.packets === 0) {
    // Silence has no words, which does not fail a job.
    if (plan.formatName === 'transcript') return { path, sizeBytes, ...NOTHING };
    throw emptiness(plan);
  }
  if (sizeBytes >= job.maxOutputBytes) {
    throw new MediaFailure(
      'EXTRACTION_FAILED',
      `the output would exceed the limit of ${job.maxOutputBytes} bytes`,
    );
  }
  const durationSeconds =
    mode === 'copy'
      ? await countCopied(job, path, plan, endSeconds)
      : countEncoded(plan, statistics, leadSamples);
  if (durationSeconds <= 0) throw emptiness(plan);
  if (durationSeconds > job.maxAudioSeconds + 1) {
    throw new MediaFailure('INVALID_VIDEO', `the audio is longer than ${job.maxAudioSeconds} s`);
  }
  return {
    path,
    sizeBytes,
    durationSeconds,
    // The timestamps of MP4 go on over a gap.
    packets: statistics.packets,
    heldSeconds:
      mode === 'copy' && plan.format.muxer === 'ipod'
        ? (statistics.packets * aacFrameSamples(plan)) / plan.track.sampleRate
        : durationSeconds,
    bitrateKbps: (statistics.bytes * 8) / durationSeconds / 1000,
    copied: mode === 'copy',
  };
}

const NOTHING = { durationSeconds: 0, packets: 0, heldSeconds: 0, bitrateKbps: 0, copied: false };

/** Of a packet, at the track's declared rate: SBR doubles it (ISO/IEC 14496-3). */
function aacFrameSamples({ track }: OutputPlan): number {
  return track.profile?.startsWith('HE-AAC') ? 2 * AAC_FRAME_SAMPLES : AAC_FRAME_SAMPLES;
}

/** Why a file has no audio. */
export function emptiness({ trim, track }: OutputPlan): MediaFailure {
  if (trim !== null) {
    return new MediaFailure('EXTRACTION_FAILED', 'there is no audio between the requested start and end');
  }
  return (track.declaredSeconds ?? 0) > 1
    ? new MediaFailure('INVALID_VIDEO', 'the file is incomplete: none of its audio is there')
    : new MediaFailure('EXTRACTION_FAILED', `audio track ${track.index} has no audio`);
}

/** ADTS has no field for the encoder's delay, so decoders output each packet whole. */
function countEncoded(
  { format, encode }: OutputPlan,
  { samples = 0, packets }: TrackStatistics,
  leadSamples: number,
): number {
  const counted = format.muxer === 'adts' ? packets * AAC_FRAME_SAMPLES : samples - leadSamples;
  return counted / encode.sampleRate;
}

/** Whatever the source's rate was (RFC 7845 section 5.1). */
const OPUS_RATE = 48_000;

/** Where packet lengths are known without decoding; else the last one is not, or is cut. */
const COUNTED_BY_PACKETS: ReadonlySet<string> = new Set(['adts', 'ipod', 'wav']);

/**
 * An MP4 ends where its track ended, which the run reported; after a late beginning that is
 * rounded. Other files are read again, which is quick: they hold only the audio.
 */
async function countCopied(
  job: Job,
  path: string,
  { format, encode, track }: OutputPlan,
  endSeconds: number | undefined,
): Promise<number> {
  if (format.muxer === 'ipod' && track.startSeconds === 0 && endSeconds !== undefined) return endSeconds;
  if (format.codec === 'opus') {
    const { opusSamples } = await import('./ogg/pages.ts');
    return (await opusSamples(path)) / OPUS_RATE;
  }
  const byPackets = COUNTED_BY_PACKETS.has(format.muxer);
  const command: Command = {
    inputs: [{ file: path, demuxer: demuxerOf(format.muxer) }],
    outputs: [{ muxer: 'null', options: ['-map', '0:a:0', ...(byPackets ? ['-c', 'copy'] : [])] }],
  };
  const { stderr, outSeconds } = await runOnInput(job, command, () => {});
  return byPackets ? (outSeconds ?? 0) : (decodedSamples(stderr, '0:0') ?? 0) / encode.sampleRate;
}

const DEMUXERS: Readonly<Record<OutputPlan['format']['muxer'], string>> = {
  mp3: 'mp3',
  adts: 'aac',
  ipod: 'mov',
  flac: 'flac',
  wav: 'wav',
  ogg: 'ogg',
  s16le: 's16le',
};

export function demuxerOf(muxer: OutputPlan['format']['muxer']): string {
  return DEMUXERS[muxer];
}
