/** Runs of ffmpeg over a caller's file, and whose fault it is when one fails. */
import { accessOf, type Command, type CommandInput, composeArguments } from './command.ts';
import { blameInput } from './failure.ts';
import type { UniformStreams } from './graph.ts';
import type { Probe } from './probe.ts';
import { type MediaTools, type RunLimits, runFfmpeg } from './run.ts';
import { graphReader } from './tool-output.ts';

/** What each run needs besides its command. */
interface MediaRun extends Pick<RunLimits, 'signal' | 'wallLimitMs'> {
  readonly tools: MediaTools;
  /** Largest file that may be written; default none may. */
  readonly maxOutputBytes?: number;
  /**
   * Whether its graph may be set up anew, because it remembers nothing, or its sound does not change. Names of tags stand in ffmpeg's log as they are, and
   * could claim that it was. Default not.
   */
  readonly takesChanges?: boolean;
}

/** `-fs` is looked at between packets, and an index is written after it; what goes further is cut off by a signal. */
const OVERSHOOT_BYTES = 64 * 1024 * 1024;

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
  /** What is decoded in place of the source, see uniform.ts; default the source itself. */
  readonly uniform?: UniformStreams & { readonly input: CommandInput };
  /** Asks for so many bytes on the disk that nobody could know of before; default they are taken. */
  readonly makeRoom?: (bytes: number) => Promise<void>;
}

/** The sound changed its sample rate or channels, and the run was ended: its filters had forgotten what came before. */
export class SoundChanged extends Error {
  override readonly name = 'SoundChanged';
}

/** The source as ffmpeg is told of it. */
export function inputOf({ input, probe }: Pick<Job, 'input' | 'probe'>): CommandInput {
  return { file: input, demuxer: probe.container.demuxer, zeroSeconds: probe.zeroSeconds };
}

/** The source, and behind it what is decoded in its place where there is such. */
export function inputsOf(job: Pick<Job, 'input' | 'probe' | 'uniform'>): CommandInput[] {
  return [inputOf(job), ...(job.uniform === undefined ? [] : [job.uniform.input])];
}

/**
 * Runs a command over the input and gives the blame for a failure to it, unless it was this machine's.
 * @throws {SoundChanged} when the graph was set up anew, unless the run takes that
 */
export async function runOnInput(
  { tools, signal, wallLimitMs, maxOutputBytes, takesChanges = false }: MediaRun,
  command: Command,
  onSeconds: (seconds: number) => void,
  onStdout?: (chunk: Buffer) => void,
): Promise<{ stderr: string; outSeconds: number | undefined }> {
  const changed = new AbortController();
  const isWatched = command.graph !== undefined && !takesChanges;
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
      : blameInput(
          error,
          'EXTRACTION_FAILED',
          'the codec or the container of the source cannot be processed',
        );
  }
}
