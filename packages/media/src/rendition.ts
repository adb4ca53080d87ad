/** The command that makes the files of a source in one run. */
import type { Command, CommandOutput } from './command.ts';
import { type Branch, clockNumbers, filterGraphs, type Gain, leadFilter, stretchFilters } from './graph.ts';
import { inputsOf, type Job } from './input-run.ts';
import { writeMetadata } from './metadata.ts';
import type { OutputPlan } from './plan.ts';

/** Uncompressed audio of a track with its gain, ready for the encoder. */
export interface LevelledPcm {
  /** Of a WAV file. */
  readonly path: string;
  /** Where the track ends on the source's clock. */
  readonly sourceSeconds: number;
  /** Silence that was put in. */
  readonly filledSeconds: number;
  /** Gaps between samples, by their timestamps. */
  readonly gapSeconds: number;
}

export interface Rendition {
  readonly plan: OutputPlan;
  readonly path: string;
  readonly mode: 'copy' | 'encode';
  readonly bitrateKbps: number | null;
  readonly gain: Gain | null;
  /** The track with that gain, encoded instead of the source's. */
  readonly pcm: LevelledPcm | null;
  /** Only this part is encoded; if it does not begin at 0, it is bare packets, without tags. */
  readonly stretch?: Parameters<typeof stretchFilters>[0];
  /** Hidden silence before it, to fill its last packet: see {@link leadFilter}. Default none. */
  readonly leadSamples?: number;
}

/** A run of ffmpeg, and where in it each rendition is. */
interface RenditionCommand extends Command {
  readonly places: readonly {
    /** Number of its output. Waveforms of the same audio share one. */
    readonly output: number;
    /** Number of its clock in the graph; any number if it is not in the graph. */
    readonly clock: number;
  }[];
}

/** @param renditions whose waveforms are of the same audio, since there is one pipe */
export async function renditionCommand(
  job: Job,
  renditions: readonly Rendition[],
): Promise<RenditionCommand> {
  const inputs = inputsOf(job);
  const branches: Branch[] = [];
  const heard: OutputPlan[] = [];
  const outputs: CommandOutput[] = [];
  const placed: { output: number; branch: number | undefined }[] = [];
  let piped: (typeof placed)[number] | undefined;
  for (const rendition of renditions) {
    const { plan, path, mode } = rendition;
    if (isPiped(rendition) && piped !== undefined) {
      placed.push(piped);
      continue;
    }
    const place = { output: outputs.length, branch: undefined as number | undefined };
    placed.push(place);
    let sound: string[];
    if (mode === 'copy') {
      sound = ['-map', `0:${plan.track.streamIndex}`, '-c:a', 'copy', ...copyOptions(plan)];
    } else if (rendition.pcm !== null) {
      sound = ['-map', `${inputs.length}:0`, ...pcmFilters(rendition), ...encoderOptions(rendition)];
      inputs.push({ file: rendition.pcm.path, demuxer: 'wav' });
    } else {
      sound = ['-map', `[out${branches.length}]`, ...encoderOptions(rendition)];
      place.branch = branches.length;
      branches.push({ plan, gain: rendition.gain, last: lastFilters(rendition) });
      // Of the parts of an output, only the last decodes the whole track.
      if (rendition.stretch?.endSample == null) heard.push(plan);
    }
    const metadata = await writeMetadata(job, { plan, path, isBare: isBare(rendition) }, inputs.length);
    if (metadata.file !== null) inputs.push({ file: metadata.file, demuxer: 'ffmetadata' });
    // Bounds for sources that declare a wrong length; checked later for whether they were reached.
    const longest = ['-t', String(job.maxAudioSeconds + 2)];
    const options = [...sound, ...metadata.options, ...muxerOptions(rendition), ...longest];
    if (isPiped(rendition)) {
      piped = place;
      outputs.push({ muxer: plan.format.muxer, options });
    } else {
      const largest = ['-fs', String(job.maxOutputBytes)];
      outputs.push({ file: path, muxer: plan.format.muxer, options: [...options, ...largest] });
    }
  }
  const clocks = clockNumbers(branches.map(({ plan }) => plan));
  const places = placed.map(({ output, branch }) => ({ output, clock: clocks[branch ?? 0] ?? 0 }));
  if (branches.length === 0) return { inputs, outputs, places };
  return { inputs, outputs, places, graphs: filterGraphs(job, branches, heard) };
}

/** Whether it is made of PCM from standard output, instead of a file. */
export function isPiped({ plan }: Pick<Rendition, 'plan'>): boolean {
  return plan.samplesPerPixel !== null;
}

/** Waveforms of the same audio share a run's one pipe. */
export function soundOf({ plan: { track, trim, timeline } }: Pick<Rendition, 'plan'>): string {
  return [track.streamIndex, trim?.startSeconds, trim?.endSeconds, timeline].join(' ');
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
  // Above 20 kHz the encoder has nothing to spend bits on: 320k would end at 270k.
  if (encode.encoder === 'aac' && (bitrateKbps ?? 0) >= 256) options.push('-cutoff', '20000');
  if (encode.encoder === 'flac') options.push('-sample_fmt', encode.bitDepth === 24 ? 's32' : 's16');
  // SILK, for music too: above complexity 6 libopus analyses the audio, and changes its mode.
  if (formatName === 'voice') {
    options.push('-application', 'voip', '-compression_level', '6', '-frame_duration', '20');
  }
  return options;
}

/** A track that begins late would keep that delay as silence or as an empty edit. */
function copyOptions({ track }: OutputPlan): string[] {
  return track.startSeconds > 0.1 ? ['-avoid_negative_ts', 'make_zero'] : [];
}

function muxerOptions(rendition: Rendition): string[] {
  const { format } = rendition.plan;
  // bitexact: no version of ffmpeg and no time in the file, so the same job gives the same bytes.
  const options = ['-fflags', '+bitexact', '-flags:a', '+bitexact'];
  if (format.muxer === 'ipod') options.push('-movflags', '+faststart');
  // By its brand players remember the place in an audiobook.
  if (format.extension === 'm4b') options.push('-brand', 'M4B ');
  if (format.muxer === 'mp3') {
    options.push(
      ...(isBare(rendition) ? ['-id3v2_version', '0', '-write_xing', '0'] : ['-id3v2_version', '3']),
    );
  }
  if (format.muxer === 'wav') options.push('-rf64', 'auto');
  return options;
}
