/** Deadlines that are counted in this process's own time. */

const STEPS = 10;

/**
 * Calls `over` once `ms` have passed for this process: of a time in which it was busy or stood still, however long, two steps count at most, so that it
 * blames nobody for an answer that it has not read. And since timers come before answers in a turn of the event loop, `over` comes after the answers of
 * its turn.
 * @returns ends it; an `over` that is due already may still come
 */
export function afterOwnTime(ms: number, over: () => void): () => void {
  const stepMs = ms / STEPS;
  let countedMs = 0;
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    countedMs += Math.min(nowMs - lastMs, 2 * stepMs);
    lastMs = nowMs;
    // Timers count whole milliseconds.
    if (countedMs < ms - 1) return;
    clearInterval(timer);
    setImmediate(over);
  }, stepMs);
  return () => clearInterval(timer);
}
