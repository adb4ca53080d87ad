/** The command that makes one or two files of a track. */
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Command, CommandOutput } from './command.ts';
import {
  type Branch,
  branchFilters,
  filterGraph,
  type Gain,
  leadFilter,
  type Stretch,
  stretchFilters,
} from './graph.ts';
import { inputOf, type Job, runOnInput } from './input-run.ts';
import { type CoverImage, hasChapterTags, metadataFile } from './metadata.ts';
import type { OutputPlan } from './plan.ts';
import type { Probe } from './probe.ts';

/** Uncompressed audio of a track with its gain, ready for the encoder. */
export interface LevelledPcm {
  /** Of a WAV file. */
  readonly path: string;
  /** Where the track ends on the source's clock. */
  readonly sourceSeconds: number;
  /** Silence that was put in. */
  readonly filledSeconds: number;
}

export interface Rendition {
  readonly plan: OutputPlan;
  readonly path: string;
  readonly mode: 'copy' | 'encode';
  readonly bitrateKbps: number | null;
  readonly gain: Gain | null;
  /** The track with that gain, to be encoded in place of the source's. */
  readonly pcm: LevelledPcm | null;
  /** Only this much of it is encoded; what does not begin at 0 is bare packets, without tags. */
  readonly stretch?: Stretch;
  /** Silence before it that the file hides, so that its last packet is full: see {@link leadFilter}. Default none. */
  readonly leadSamples?: number;
}

export async function renditionCommand(job: Job, renditions: readonly Rendition[]): Promise<Command> {
  const inputs = [inputOf(job)];
  const branches: Branch[] = [];
  const outputs: CommandOutput[] = [];
  for (const rendition of renditions) {
    const { plan, path, mode } = rendition;
    let sound: string[];
    if (mode === 'copy') {
      sound = ['-map', `0:${plan.track.streamIndex}`, '-c:a', 'copy', ...copyOptions(plan)];
    } else if (rendition.pcm !== null) {
      sound = ['-map', `${inputs.length}:0`, ...pcmFilters(rendition), ...encoderOptions(rendition)];
      inputs.push({ file: rendition.pcm.path, demuxer: 'wav' });
    } else {
      sound = ['-map', `[out${branches.length}]`, ...encoderOptions(rendition)];
      branches.push({ timeline: plan.timeline, filters: encodeFilters(rendition) });
    }
    const metadata = await writeMetadata(job, rendition, inputs.length);
    if (metadata.file !== null) inputs.push({ file: metadata.file, demuxer: 'ffmetadata' });
    outputs.push({
      file: path,
      muxer: plan.format.muxer,
      options: [
        ...sound,
        ...metadata.options,
        ...muxerOptions(rendition),
        // Bounds for what lies about its length; whether they were reached is checked afterwards.
        ...['-t', String(job.maxAudioSeconds + 2), '-fs', String(job.maxOutputBytes)],
      ],
    });
  }
  const [first] = renditions;
  if (branches.length === 0 || first === undefined) return { inputs, outputs };
  return { inputs, outputs, graph: filterGraph(first.plan, branches) };
}

function encodeFilters(rendition: Rendition): string {
  return [branchFilters(rendition.plan, rendition.gain), ...lastFilters(rendition)].join(',');
}

function pcmFilters(rendition: Rendition): string[] {
  const filters = lastFilters(rendition);
  return filters.length === 0 ? [] : ['-filter:a', filters.join(',')];
}

function lastFilters({ stretch, leadSamples = 0 }: Rendition): string[] {
  return [
    ...(stretch === undefined ? [] : [stretchFilters(stretch)]),
    ...(leadSamples === 0 ? [] : [leadFilter(leadSamples)]),
  ];
}

function isBare({ stretch }: Rendition): boolean {
  return stretch !== undefined && stretch.startSample > 0;
}

function encoderOptions({ plan: { encode, formatName }, bitrateKbps }: Rendition): string[] {
  const options = ['-c:a', encode.encoder];
  if (bitrateKbps !== null) options.push('-b:a', `${bitrateKbps}k`);
  // Above 20 kHz the encoder finds nothing to spend bits on: without the cutoff 320k ends at 270k.
  if (encode.encoder === 'aac' && (bitrateKbps ?? 0) >= 256) options.push('-cutoff', '20000');
  if (encode.encoder === 'flac') options.push('-sample_fmt', encode.bitDepth === 24 ? 's32' : 's16');
  // SILK, for music too: above complexity 6 libopus looks at what it hears, and changes its mode.
  if (formatName === 'voice') {
    options.push('-application', 'voip', '-compression_level', '6', '-frame_duration', '20');
  }
  return options;
}

/** A track that begins late in its container would keep that delay as silence or as an empty edit. */
function copyOptions({ track }: OutputPlan): string[] {
  return track.startSeconds > 0.1 ? ['-avoid_negative_ts', 'make_zero'] : [];
}

function muxerOptions(rendition: Rendition): string[] {
  const { format } = rendition.plan;
  // bitexact: no version of ffmpeg and no time of day in the file, so that the same job gives the same bytes.
  const options = ['-fflags', '+bitexact', '-flags:a', '+bitexact'];
  if (format.muxer === 'ipod') options.push('-movflags', '+faststart');
  if (format.muxer === 'mp3') {
    options.push(
      ...(isBare(rendition) ? ['-id3v2_version', '0', '-write_xing', '0'] : ['-id3v2_version', '3']),
    );
  }
  if (format.muxer === 'wav') options.push('-rf64', 'auto');
  return options;
}

/** `place` is the input's number in the command, should a metadata file be written. */
async function writeMetadata(
  job: Job,
  rendition: Rendition,
  place: number,
): Promise<{ file: string | null; options: string[] }> {
  const { plan, path } = rendition;
  const { format, track, preserveMetadata, trim } = plan;
  const streamTags = ['-map_metadata:s', '-1'];
  if (!preserveMetadata || !format.keeps.tags || isBare(rendition)) {
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
    inputs: [inputOf(job)],
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
