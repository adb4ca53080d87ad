/** For files that take part in several runs (CONTRIBUTING.md, "Tests"). */
import { inject } from 'vitest';

/**
 * Also for `it.runIf(currentRun === 'core')`, of a test that stands beside a table or a number of
 * repetitions.
 */
export const currentRun = inject('run');

/**
 * What this run takes, such as how often it repeats.
 * @param values by each run in the file's name
 */
export function byRun<T>(values: Readonly<{ core?: T; all?: T; long?: T }>): T {
  const value = values[currentRun];
  if (value === undefined) {
    throw new Error(
      `the file's name says that it takes part in the run "${currentRun}", and nothing is given for it`,
    );
  }
  return value;
}

/**
 * The rows of a table that this run takes: the core its own, `all` the others.
 * @param core how many of the first rows are the core's, or which
 * @param every `all` takes each so many-th of the others, and `long` the rest; default each
 */
export function rowsOfRun<const Row>(
  rows: readonly Row[],
  core: number | ((row: Row, nth: number) => boolean),
  every = 1,
): readonly Row[] {
  const isCore = typeof core === 'number' ? (_: Row, nth: number) => nth < core : core;
  const others = rows.filter((row, nth) => !isCore(row, nth));
  return byRun({
    core: rows.filter(isCore),
    all: others.filter((_, nth) => nth % every === 0),
    long: others.filter((_, nth) => nth % every !== 0),
  });
}
