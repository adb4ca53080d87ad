/** One fraction over all the runs that an extraction takes. */

interface ProgressReport {
  /** A callback for one run's seconds, which fills the part of the whole from `from` to `to`. */
  phase(from: number, to: number): (seconds: number) => void;
  /** The report of one of several works, which fills that part of the whole. */
  part(from: number, to: number, expectedSeconds: number | null): ProgressReport;
  done(): void;
}

export function progressReport(
  expectedSeconds: number | null,
  onProgress: ((fraction: number) => void) | undefined,
): ProgressReport {
  let reached = 0;
  const report = (fraction: number) => {
    if (!(fraction > reached)) return;
    reached = Math.min(1, fraction);
    onProgress?.(reached);
  };
  return {
    phase: (from, to) => (seconds) => {
      // A container that says nothing about its length leaves nothing to divide by.
      if (expectedSeconds !== null && expectedSeconds > 0) {
        report(from + (to - from) * Math.min(1, seconds / expectedSeconds));
      }
    },
    part: (from, to, seconds) => progressReport(seconds, (fraction) => report(from + (to - from) * fraction)),
    done: () => report(1),
  };
}
