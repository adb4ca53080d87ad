/** One run of ffmpeg that makes one or two files of a track, copied or encoded from one decode, and what they are. */
import { stat } from 'node:fs/promises';
import type { Command } from './command.ts';
import { MediaFailure } from './failure.ts';
import { type Job, runOnInput } from './input-run.ts';
import { opusSamples } from './opus-length.ts';
import type { OutputPlan } from './plan.ts';
import { type Rendition, renditionCommand } from './rendition.ts';
import { decodedSamples, outputStatistics, type TrackStatistics } from './statistics.ts';

export interface RenderedFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Counted from samples or packets. */
  readonly durationSeconds: number;
  /** How much of the track was read for it, counted likewise. */
  readonly sourceSeconds: number;
  /** Measured from the packets. */
  readonly bitrateKbps: number;
  readonly copied: boolean;
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
  const command = await renditionCommand(job, renditions);
  const { stderr } = await runOnInput(job, command, onSeconds);
  const files: RenderedFile[] = [];
  for (const [output, rendition] of renditions.entries()) {
    const file = await measureRendition(job, rendition, outputStatistics(stderr, output));
    files.push({ ...file, sourceSeconds: sourceSecondsOf(rendition, stderr) ?? file.durationSeconds });
  }
  return files;
}

/** How much of the track was read in a run; undefined where nothing was decoded. */
export function sourceSecondsOf({ plan: { track }, pcm }: Rendition, stderr: string): number | undefined {
  if (pcm !== null) return pcm.sourceSeconds;
  const samples = decodedSamples(stderr, track.streamIndex);
  return samples === undefined ? undefined : samples / track.sampleRate;
}

/** @throws {MediaFailure} when the file holds nothing, or is larger or longer than the job takes */
export async function measureRendition(
  job: Job,
  { plan, path, mode }: Rendition,
  statistics: TrackStatistics | undefined,
): Promise<Omit<RenderedFile, 'sourceSeconds'>> {
  const { size: sizeBytes } = await stat(path);
  if (statistics === undefined || statistics.packets === 0) {
    throw emptiness(plan);
  }
  if (sizeBytes >= job.maxOutputBytes) {
    throw new MediaFailure(
      'EXTRACTION_FAILED',
      `the output would be larger than ${job.maxOutputBytes} bytes`,
    );
  }
  const durationSeconds =
    mode === 'copy' ? await countCopied(job, path, plan) : countEncoded(plan, statistics);
  if (durationSeconds <= 0) throw emptiness(plan);
  if (durationSeconds > job.maxAudioSeconds + 1) {
    throw new MediaFailure('INVALID_VIDEO', `the audio is longer than ${job.maxAudioSeconds} s`);
  }
  return {
    path,
    sizeBytes,
    durationSeconds,
    bitrateKbps: (statistics.bytes * 8) / durationSeconds / 1000,
    copied: mode === 'copy',
  };
}

function emptiness({ trim, track }: OutputPlan): MediaFailure {
  if (trim !== null) {
    return new MediaFailure(
      'EXTRACTION_FAILED',
      'there is no audio between the start and the end that were asked for',
    );
  }
  return (track.declaredSeconds ?? 0) > 1
    ? new MediaFailure('INVALID_VIDEO', 'the file is truncated: nothing of its audio is there')
    : new MediaFailure('EXTRACTION_FAILED', `audio track ${track.index} holds no audio`);
}

/** ADTS has no place for the encoder's delay, so that a decoder gives out each packet whole; everywhere else the samples put in come out. */
function countEncoded({ format, encode }: OutputPlan, { samples = 0, packets }: TrackStatistics): number {
  const counted = format.muxer === 'adts' ? packets * AAC_FRAME_SAMPLES : samples;
  return counted / encode.sampleRate;
}

/** Whatever the source's rate was (RFC 7845 section 5.1). */
const OPUS_RATE = 48_000;

/** Where each packet's length is known without decoding it; elsewhere the last one's is not, or is cut in the decoder. */
const COUNTED_BY_PACKETS: ReadonlySet<string> = new Set(['adts', 'ipod', 'wav']);

/** Reads a copy again, which is quick: the file holds nothing but the audio. */
async function countCopied(job: Job, path: string, { format, encode }: OutputPlan): Promise<number> {
  if (format.codec === 'opus') return (await opusSamples(path)) / OPUS_RATE;
  const byPackets = COUNTED_BY_PACKETS.has(format.muxer);
  const command: Command = {
    inputs: [{ file: path, demuxer: demuxerOf(format.muxer) }],
    outputs: [{ muxer: 'null', options: ['-map', '0:a:0', ...(byPackets ? ['-c', 'copy'] : [])] }],
  };
  const { stderr, outSeconds } = await runOnInput(job, command, () => {});
  return byPackets ? (outSeconds ?? 0) : (decodedSamples(stderr, 0) ?? 0) / encode.sampleRate;
}

const DEMUXERS: Readonly<Record<OutputPlan['format']['muxer'], string>> = {
  mp3: 'mp3',
  adts: 'aac',
  ipod: 'mov',
  flac: 'flac',
  wav: 'wav',
  ogg: 'ogg',
};

export function demuxerOf(muxer: OutputPlan['format']['muxer']): string {
  return DEMUXERS[muxer];
}
