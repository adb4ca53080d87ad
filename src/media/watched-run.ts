/** Tells whoever wants to know that a tool runs, and how it ended. */

type Tool = 'ffmpeg' | 'ffprobe';

/** @returns called once, when the run is over */
export type RunWatch = (tool: Tool) => (ending: 'completed' | 'failed' | 'aborted') => void;

export async function watchedRun<Result>(
  watch: RunWatch | undefined,
  tool: Tool,
  signal: AbortSignal,
  run: () => Promise<Result>,
): Promise<Result> {
  const tell = watch?.(tool);
  try {
    const result = await run();
    tell?.('completed');
    return result;
  } catch (error) {
    tell?.(signal.aborted ? 'aborted' : 'failed');
    throw error;
  }
}
