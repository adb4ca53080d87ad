/** Runs of ffmpeg over a caller's file, and whose fault it is when one fails. */
import { accessOf, type Command, type CommandInput, composeArguments } from './command.ts';
import { blameInput } from './failure.ts';
import type { Probe } from './probe.ts';
import { type MediaTools, type RunLimits, runFfmpeg } from './run.ts';

/** What each run needs besides its command. */
interface MediaRun extends Pick<RunLimits, 'signal' | 'wallLimitMs'> {
  readonly tools: MediaTools;
  /** Largest file that may be written; default none may. */
  readonly maxOutputBytes?: number;
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
}

/** The source as ffmpeg is told of it. */
export function inputOf({ input, probe }: Pick<Job, 'input' | 'probe'>): CommandInput {
  return { file: input, demuxer: probe.container.demuxer, startSeconds: probe.startSeconds };
}

/** Runs a command over the input and gives the blame for a failure to it, unless it was this machine's. */
export async function runOnInput(
  { tools, signal, wallLimitMs, maxOutputBytes }: MediaRun,
  command: Command,
  onSeconds: (seconds: number) => void,
  onStdout?: (chunk: Buffer) => void,
): Promise<{ stderr: string; outSeconds: number | undefined }> {
  try {
    const { stderr, lastProgress } = await runFfmpeg(tools, composeArguments(command), {
      signal,
      wallLimitMs,
      access: accessOf(command),
      maxFileBytes: maxOutputBytes === undefined ? 0 : maxOutputBytes + OVERSHOOT_BYTES,
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
