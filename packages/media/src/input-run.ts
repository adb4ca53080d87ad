/**
 * Runs of ffmpeg over a caller's file: what a failure is blamed on, and what happens when the
 * audio's format changes in the middle.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { accessOf, type Command, type CommandInput, composeArguments } from './command.ts';
import { blameInput, MediaFailure, ToolFailure } from './failure.ts';
import { mixGraph, sourcesOf, type UniformStreams, uniformGraphs } from './graph.ts';
import { uniformBytes } from './output-size.ts';
import type { OutputPlan } from './plan.ts';
import type { AudioTrack, Probe } from './probe.ts';
import { type MediaTools, type RunLimits, runFfmpeg } from './run.ts';
import { graphReader } from './tool-output.ts';
import { codecName } from './track-choice.ts';

/** What each run needs besides its command. */
interface MediaRun extends Pick<RunLimits, 'signal' | 'wallLimitMs'> {
  readonly tools: MediaTools;
  /** Largest file that may be written; default none may. */
  readonly maxOutputBytes?: number;
  /**
   * Whether its graph may be rebuilt, because it keeps no state or its audio does not change.
   * Then the log is not watched: tags appear in it unchanged, and could fake a rebuild. Default
   * false.
   */
  readonly takesChanges?: boolean;
  /** What the source has, to be named in a failure; default only its container is. */
  readonly probe?: Probe;
}

/** `-fs` is checked between packets, before the index; beyond this a signal ends the run. */
const OVERSHOOT_BYTES = 64 * 1024 * 1024;

/** What all runs of one extraction share. */
export interface Job extends MediaRun {
  readonly input: string;
  readonly probe: Probe;
  /** Folder of this extraction alone; its creator removes it. */
  readonly scratch: string;
  /** Longest audio that is accepted, seconds. */
  readonly maxAudioSeconds: number;
  /** Largest file that may be written. */
  readonly maxOutputBytes: number;
  /** Decoded instead of the source: {@link onUniformSound}, {@link withMix}. Default the source. */
  readonly uniform?: UniformStreams & { readonly input: CommandInput };
  /** Requests disk bytes that could not be predicted; default granted. */
  readonly makeRoom?: (bytes: number) => Promise<void>;
}

/** The sample rate or channels changed, and the run was ended: its filters had lost their state. */
class SoundChanged extends Error {
  override readonly name = 'SoundChanged';
}

/** An output got no sample: ffmpeg 7 ends with an error then, 5 wrote an empty file. */
export class EmptyOutputs extends MediaFailure {
  /** Their numbers in the command. */
  readonly outputs: readonly number[];

  constructor(outputs: readonly number[], options: { cause: unknown }) {
    super('EXTRACTION_FAILED', 'there is no audio in the requested part', options);
    this.outputs = outputs;
  }
}

const EMPTY_OUTPUT = /^\[aost#(\d+):\d+\S* @ \w+\] Could not open encoder before EOF$/gm;

function emptyOutputs(error: unknown): EmptyOutputs | undefined {
  if (!(error instanceof ToolFailure)) return undefined;
  const numbers = [...error.stderr.matchAll(EMPTY_OUTPUT)].map(([, output]) => Number(output));
  return numbers.length === 0 ? undefined : new EmptyOutputs(numbers, { cause: error });
}

/** The source as an input of ffmpeg. */
export function inputOf({ input, probe }: Pick<Job, 'input' | 'probe'>): CommandInput {
  const { container, zeroSeconds, beginnings, isCountedByUse, isLate, longestGapSeconds } = probe;
  const { demuxer } = container;
  return { file: input, demuxer, zeroSeconds, beginnings, isCountedByUse, isLate, longestGapSeconds };
}

/** The source, followed by the file that is decoded instead of it, if any. */
export function inputsOf(job: Pick<Job, 'input' | 'probe' | 'uniform'>): CommandInput[] {
  return [inputOf(job), ...(job.uniform === undefined ? [] : [job.uniform.input])];
}

/**
 * Runs a command over the input, and blames a failure on it unless this machine caused it.
 * @throws {SoundChanged} when the graph was rebuilt, unless the run takes that; {EmptyOutputs}
 */
export async function runOnInput(
  { tools, signal, wallLimitMs, maxOutputBytes, takesChanges = false, probe }: MediaRun,
  command: Command,
  onSeconds: (seconds: number) => void,
  onStdout?: (chunk: Buffer) => void,
): Promise<{ stderr: string; outSeconds: number | undefined }> {
  const changed = new AbortController();
  const isWatched = command.graphs !== undefined && !takesChanges;
  try {
    const { stderr, lastProgress } = await runFfmpeg(tools, composeArguments(command), {
      signal: isWatched ? AbortSignal.any([signal, changed.signal]) : signal,
      wallLimitMs,
      access: accessOf(command),
      maxFileBytes: maxOutputBytes === undefined ? 0 : maxOutputBytes + OVERSHOOT_BYTES,
      onProgress: ({ outSeconds }) => {
        if (outSeconds !== undefined) onSeconds(outSeconds);
      },
      ...(onStdout === undefined ? {} : { onStdout }),
      ...(isWatched ? { onStderr: graphReader(() => changed.abort(new SoundChanged())) } : {}),
    });
    return { stderr, outSeconds: lastProgress.outSeconds };
  } catch (error) {
    throw signal.aborted || error instanceof SoundChanged
      ? error
      : (emptyOutputs(error) ??
          blameInput(
            error,
            'EXTRACTION_FAILED',
            `${soundOf(command, probe)} cannot be processed; convert the file with another program first`,
          ));
  }
}

/** `aac (LC), 2 channels, in mp4`: callers see it. */
function soundOf({ inputs }: Command, probe: Probe | undefined): string {
  if (probe === undefined) return `the sound in ${inputs[0]?.demuxer}`;
  const names = new Set(probe.tracks.map((track) => `${codecName(track)}, ${track.channels} channels`));
  return `${[...names].slice(0, NAMED_TRACKS).join('; ')}, in ${probe.container.name},`;
}

/** Of tracks that differ, in a failure. */
const NAMED_TRACKS = 3;

// Broadcasts change sample rate or channels between a programme and its advertisements. ffmpeg then
// rebuilds its filters, which lose the clock, their measurements and their cuts. So the audio is
// first decoded to PCM of one format, by filters that keep no state.

/** Its fragments keep the time of each packet of PCM, which MOV without them does not. */
export const UNIFORM_MUXER = 'mov';
/** Floating-point audio may exceed full scale until it is levelled. */
export const UNIFORM_ENCODER = 'pcm_f32le';
const FRAGMENTS = ['-movflags', 'empty_moov+frag_discont', '-frag_duration', '10000000'];

/**
 * Does the work, and repeats it on uniform audio if a track turns out to change.
 * @param plans all that may be encoded
 */
export async function onUniformSound<T>(
  job: Job,
  plans: readonly OutputPlan[],
  work: (job: Job) => Promise<T>,
): Promise<T> {
  try {
    return await work(job);
  } catch (error) {
    if (!(error instanceof SoundChanged)) throw error;
    return await work(await withUniformSound(job, plans));
  }
}

async function withUniformSound(job: Job, plans: readonly OutputPlan[]): Promise<Job> {
  // Its filters keep no state.
  return decodedFirst(
    { ...job, takesChanges: true },
    sourcesOf(plans),
    plans,
    uniformGraphs(plans, uniformEnd(job, plans)),
  );
}

/** The same job, decoding a mix of tracks that is made once for all plans. */
export async function withMix(job: Job, mix: AudioTrack, plans: readonly OutputPlan[]): Promise<Job> {
  const graph = mixGraph(job, mix, plans, uniformEnd(job, plans));
  return decodedFirst(job, [mix], plans, [graph]);
}

/**
 * Decodes the graphs into one file, which plans then use instead of the source.
 * @param graphs which end where no plan continues: {@link uniformEnd}
 */
async function decodedFirst(
  job: Job,
  tracks: readonly AudioTrack[],
  plans: readonly OutputPlan[],
  graphs: readonly string[],
): Promise<Job> {
  const streams = tracks.map(({ streamIndex }) => streamIndex);
  const file = join(job.scratch, `decoded${streams.join('_')}.mov`);
  const untilSeconds = uniformEnd(job, plans);
  const roomBytes = uniformBytes(tracks, plans, { ...job.probe, maxAudioSeconds: untilSeconds });
  await job.makeRoom?.(roomBytes);
  // It holds all tracks.
  const maxOutputBytes = Math.max(job.maxOutputBytes, roomBytes);
  await runOnInput(
    { ...job, maxOutputBytes },
    {
      inputs: inputsOf(job),
      graphs,
      outputs: [
        {
          file,
          muxer: UNIFORM_MUXER,
          options: [
            ...streams.flatMap((_, nth) => ['-map', `[out${nth}]`]),
            ...['-c:a', UNIFORM_ENCODER, ...FRAGMENTS, '-avoid_negative_ts', 'disabled'],
            ...['-t', String(job.maxAudioSeconds + 2), '-fs', String(maxOutputBytes)],
          ],
        },
      ],
    },
    () => {},
  );
  if ((await stat(file)).size >= maxOutputBytes) {
    throw new MediaFailure(
      'EXTRACTION_FAILED',
      `the audio must be decoded first, and would need more than ${maxOutputBytes} bytes uncompressed`,
    );
  }
  return {
    ...job,
    takesChanges: true,
    uniform: { input: { file, demuxer: 'mov', zeroSeconds: 0 }, streams },
  };
}

/** How far the source is of use: just past the last plan's end, or past the longest accepted. */
function uniformEnd({ maxAudioSeconds }: Job, plans: readonly OutputPlan[]): number {
  const ends = plans.map(({ trim }) => trim?.endSeconds ?? Number.POSITIVE_INFINITY);
  return Math.min(maxAudioSeconds + 2, Math.max(...ends) + 1);
}
