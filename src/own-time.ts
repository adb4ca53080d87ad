/** Deadlines that are counted in this process's own time. */

const STEPS = 10;

/**
 * Calls `over` once `ms` have passed for this process. It waits in steps, so a process that was busy or stood still, for however long, has waited
 * for one of them, and blames nobody for an answer that it has not read. And since timers come before answers in a turn of the event loop, `over` comes
 * after the answers of its turn.
 * @returns ends it
 */
export function afterOwnTime(ms: number, over: () => void): () => void {
  let stepsLeft = STEPS;
  const timer = setInterval(() => {
    stepsLeft -= 1;
    if (stepsLeft > 0) return;
    clearInterval(timer);
    setImmediate(over);
  }, ms / STEPS);
  return () => clearInterval(timer);
}
