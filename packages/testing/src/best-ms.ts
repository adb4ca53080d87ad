/**
 * What takes longer once may be the machine's fault; what takes longer each time is the code's. A
 * neighbour may compile or start ten processes in the moment of a measurement, so a bound in ms is
 * for the best of a few tries.
 * @param limitMs a try that takes less is enough
 * @param measure how long a try took, ms. What a try needs is made within it
 * @returns the least of them: the caller compares it with the limit
 */
export async function bestMs(limitMs: number, measure: () => Promise<number>, tries = 3): Promise<number> {
  const took = await measure();
  return took < limitMs || tries === 1 ? took : Math.min(took, await bestMs(limitMs, measure, tries - 1));
}

/** How long it took until `work` was done, ms. */
export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
