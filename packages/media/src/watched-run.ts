/** Tells whoever wants to know that a tool runs, how it ended, and what it used. */

type Tool = 'ffmpeg' | 'ffprobe';

/** @returns called once, when the run is over. `processorSeconds`: as ffmpeg says itself, else the time by the clock, which one thread cannot exceed */
export type RunWatch = (
  tool: Tool,
) => (ending: 'completed' | 'failed' | 'aborted', processorSeconds: number) => void;

/** What ffmpeg says at its end with `-benchmark`. */
const USED = /^bench: utime=([\d.]+)s stime=([\d.]+)s/m;

export async function watchedRun<Result extends { readonly stderr: string }>(
  watch: RunWatch | undefined,
  tool: Tool,
  signal: AbortSignal,
  run: () => Promise<Result>,
): Promise<Result> {
  const tell = watch?.(tool);
  const startedMs = performance.now();
  const byTheClock = (): number => (performance.now() - startedMs) / 1000;
  try {
    const result = await run();
    const [, user, system] = USED.exec(result.stderr) ?? [];
    tell?.('completed', user === undefined ? byTheClock() : Number(user) + Number(system));
    return result;
  } catch (error) {
    tell?.(signal.aborted ? 'aborted' : 'failed', byTheClock());
    throw error;
  }
}
