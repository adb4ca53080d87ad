/** One run of ffmpeg that makes one or two files of a track: copied, or encoded from one decode. */
import { stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Command, type CommandOutput, composeArguments } from './command.ts';
import { blameInput, MediaFailure } from './failure.ts';
import { branchFilters, filterGraph, type Gain } from './graph.ts';
import { type CoverImage, hasChapterTags, metadataFile } from './metadata.ts';
import type { OutputPlan } from './plan.ts';
import type { Probe } from './probe.ts';
import { type MediaTools, type RunLimits, runFfmpeg } from './run.ts';
import { decodedSamples, outputStatistics, type TrackStatistics } from './statistics.ts';

/** What each run needs besides its command. */
export interface MediaRun extends RunLimits {
  readonly tools: MediaTools;
}

/** What all runs of one extraction share. */
export interface Job extends MediaRun {
  readonly input: string;
  readonly probe: Probe;
  /** Folder of this extraction alone; whoever made it removes it. */
  readonly scratch: string;
  /** Longest audio that is accepted, seconds. */
  readonly maxAudioSeconds: number;
  /** Largest file that may be written. */
  readonly maxOutputBytes: number;
}

export interface Rendition {
  readonly plan: OutputPlan;
  readonly path: string;
  readonly mode: 'copy' | 'encode';
  readonly bitrateKbps: number | null;
  readonly gain: Gain | null;
}

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
    const samples = decodedSamples(stderr, rendition.plan.track.streamIndex);
    const sourceSeconds =
      samples === undefined ? file.durationSeconds : samples / rendition.plan.track.sampleRate;
    files.push({ ...file, sourceSeconds });
  }
  return files;
}

/** Runs a command over the input and gives the blame for a failure to it, unless it was this machine's. */
export async function runOnInput(
  { tools, signal, wallLimitMs }: MediaRun,
  command: Command,
  onSeconds: (seconds: number) => void,
  onStdout?: (chunk: Buffer) => void,
): Promise<{ stderr: string; outSeconds: number | undefined }> {
  try {
    const { stderr, lastProgress } = await runFfmpeg(tools, composeArguments(command), {
      signal,
      wallLimitMs,
      onProgress: ({ outSeconds }) => {
        if (outSeconds !== undefined) onSeconds(outSeconds);
      },
      ...(onStdout === undefined ? {} : { onStdout }),
    });
    return { stderr, outSeconds: lastProgress.outSeconds };
  } catch (error) {
    throw signal.aborted
      ? error
      : blameInput(
          error,
          'EXTRACTION_FAILED',
          'the codec or the container of the source cannot be processed',
        );
  }
}

async function renditionCommand(job: Job, renditions: readonly Rendition[]): Promise<Command> {
  const { input, probe } = job;
  const inputs = [{ file: input, demuxer: probe.container.demuxer }];
  const branches: string[] = [];
  const outputs: CommandOutput[] = [];
  for (const rendition of renditions) {
    const { plan, path, mode } = rendition;
    const sound =
      mode === 'copy'
        ? ['-map', `0:${plan.track.streamIndex}`, '-c:a', 'copy', ...copyOptions(plan)]
        : ['-map', `[out${branches.length}]`, ...encoderOptions(rendition)];
    if (mode === 'encode') branches.push(branchFilters(plan, rendition.gain));
    const metadata = await writeMetadata(job, rendition, inputs.length);
    if (metadata.file !== null) inputs.push({ file: metadata.file, demuxer: 'ffmetadata' });
    outputs.push({
      file: path,
      muxer: plan.format.muxer,
      options: [
        ...sound,
        ...metadata.options,
        ...muxerOptions(plan),
        // Bounds for what lies about its length; whether they were reached is checked afterwards.
        ...['-t', String(job.maxAudioSeconds + 2), '-fs', String(job.maxOutputBytes)],
      ],
    });
  }
  const [first] = renditions;
  if (branches.length === 0 || first === undefined) return { inputs, outputs };
  return { inputs, outputs, graph: filterGraph(first.plan.track, first.plan.trim, branches) };
}

function encoderOptions({ plan: { encode, formatName }, bitrateKbps }: Rendition): string[] {
  const options = ['-c:a', encode.encoder];
  if (bitrateKbps !== null) options.push('-b:a', `${bitrateKbps}k`);
  // Above 20 kHz the encoder finds nothing to spend bits on: without the cutoff 320k ends at 270k.
  if (encode.encoder === 'aac' && (bitrateKbps ?? 0) >= 256) options.push('-cutoff', '20000');
  if (encode.encoder === 'flac') options.push('-sample_fmt', encode.bitDepth === 24 ? 's32' : 's16');
  if (formatName === 'voice') options.push('-application', 'voip');
  return options;
}

/** A track that begins late in its container would keep that delay as silence or as an empty edit. */
function copyOptions({ track }: OutputPlan): string[] {
  return track.startSeconds > 0.1 ? ['-avoid_negative_ts', 'make_zero'] : [];
}

function muxerOptions({ format }: OutputPlan): string[] {
  // bitexact: no version of ffmpeg and no time of day in the file, so that the same job gives the same bytes.
  const options = ['-fflags', '+bitexact', '-flags:a', '+bitexact'];
  if (format.muxer === 'ipod') options.push('-movflags', '+faststart');
  if (format.muxer === 'mp3') options.push('-id3v2_version', '3');
  if (format.muxer === 'wav') options.push('-rf64', 'auto');
  return options;
}

/** `place` is the input's number in the command, should a metadata file be written. */
async function writeMetadata(
  job: Job,
  { plan, path }: Rendition,
  place: number,
): Promise<{ file: string | null; options: string[] }> {
  const { format, track, preserveMetadata, trim } = plan;
  const streamTags = ['-map_metadata:s', '-1'];
  if (!preserveMetadata || !format.keeps.tags) {
    return { file: null, options: ['-map_metadata', '-1', ...streamTags, '-map_chapters', '-1'] };
  }
  const cover = format.keeps.cover ? job.probe.cover : null;
  const inTag = format.muxer === 'ogg' && cover !== null ? await readCover(job, cover) : null;
  const file = join(job.scratch, `${basename(path)}.ffmetadata`);
  await writeFile(file, metadataFile(job.probe, track.tags, format, trim, inTag));
  const options = [
    '-map_metadata',
    String(place),
    ...streamTags,
    '-map_chapters',
    format.keeps.chapters && !hasChapterTags(format) ? String(place) : '-1',
  ];
  if (track.language !== null && /^[a-z]{3}$/.test(track.language)) {
    options.push('-metadata:s:a:0', `language=${track.language}`);
  }
  if (cover !== null && inTag === null && format.muxer !== 'ogg') {
    // The comment is what ID3 and FLAC call the kind of picture.
    options.push(...['-map', `0:${cover.streamIndex}`, '-c:v', 'copy', '-disposition:v:0', 'attached_pic']);
    options.push(...['-metadata:s:v:0', 'comment=Cover (front)']);
  }
  return { file, options };
}

/** A picture in an Ogg tag stands in the headers, which players read whole: larger ones are left out. */
const MAX_TAG_COVER_BYTES = 8 * 1024 * 1024;

async function readCover(job: Job, cover: NonNullable<Probe['cover']>): Promise<CoverImage | null> {
  const chunks: Buffer[] = [];
  const command: Command = {
    inputs: [{ file: job.input, demuxer: job.probe.container.demuxer }],
    outputs: [
      {
        muxer: 'data',
        options: [
          '-map',
          `0:${cover.streamIndex}`,
          '-c',
          'copy',
          '-frames:v',
          '1',
          '-fs',
          String(MAX_TAG_COVER_BYTES),
        ],
      },
    ],
  };
  await runOnInput(
    job,
    command,
    () => {},
    (chunk) => chunks.push(chunk),
  );
  const bytes = Buffer.concat(chunks);
  return bytes.length === 0 || bytes.length >= MAX_TAG_COVER_BYTES ? null : { cover, bytes };
}

async function measureRendition(
  job: Job,
  { plan, path, mode }: Rendition,
  statistics: TrackStatistics | undefined,
): Promise<Omit<RenderedFile, 'sourceSeconds'>> {
  const { size: sizeBytes } = await stat(path);
  if (statistics === undefined || statistics.packets === 0) {
    throw new MediaFailure('EXTRACTION_FAILED', emptyDetails(plan));
  }
  if (sizeBytes >= job.maxOutputBytes) {
    throw new MediaFailure(
      'EXTRACTION_FAILED',
      `the output would be larger than ${job.maxOutputBytes} bytes`,
    );
  }
  const durationSeconds =
    mode === 'copy' ? await countCopied(job, path, plan) : countEncoded(plan, statistics);
  if (durationSeconds <= 0) throw new MediaFailure('EXTRACTION_FAILED', emptyDetails(plan));
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

function emptyDetails({ trim, track }: OutputPlan): string {
  return trim === null
    ? `audio track ${track.index} holds no audio`
    : `there is no audio between the start and the end that were asked for`;
}

/** ADTS has no place for the encoder's delay, so that a decoder gives out each packet whole; everywhere else the samples put in come out. */
function countEncoded({ format, encode }: OutputPlan, { samples = 0, packets }: TrackStatistics): number {
  const counted = format.muxer === 'adts' ? packets * AAC_FRAME_SAMPLES : samples;
  return counted / encode.sampleRate;
}

/** Where each packet's length is known without decoding it; elsewhere the last one's is not, or is cut in the decoder. */
const COUNTED_BY_PACKETS: ReadonlySet<string> = new Set(['adts', 'ipod', 'wav']);

/** Reads a copy again, which is quick: the file holds nothing but the audio. */
async function countCopied(job: Job, path: string, { format, encode }: OutputPlan): Promise<number> {
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
