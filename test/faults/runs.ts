/** How often a scenario runs, and where its figures go. */
import { appendFileSync } from 'node:fs';
import { byRun, currentRun } from 'soundpost-testing/by-run';
import { expect } from 'vitest';

/** Whether this is the long run: `npm run faults`. */
export const isLong = currentRun === 'long';

/** The count for this run: of `script/test --all`, and of the core where it has the scenario, or of `npm run faults`. */
export function runs(short: number, long: number): number {
  return byRun({ core: short, all: short, long });
}

/** A seed for a scenario's random numbers: FAULTS_SEED repeats an earlier run, as far as the machine's timing allows. */
export function seed(): number {
  return process.env.FAULTS_SEED === undefined
    ? Math.floor(Math.random() * 2 ** 31)
    : Number(process.env.FAULTS_SEED);
}

/** Numbers from 0 to below 1 that follow from the seed (mulberry32). */
export function randomFrom(seedNumber: number): () => number {
  let state = seedNumber;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A promised time is shown by the long run, on a machine with nothing else to do: beside other tests a process is late without a fault. */
export function promised(took: number, limit: number, what?: string): void {
  if (isLong) expect(took, what).toBeLessThanOrEqual(limit);
}

/** The value that this part of the values (0 to 1) does not exceed; NaN of none. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}

/**
 * Says what a scenario measured: as a line on standard output, and as a line of JSON in the file named by FAULTS_REPORT.
 * @param row names the scenario, as docs/failure.md does
 */
export function report(row: string, figures: Readonly<Record<string, unknown>>): void {
  const line = JSON.stringify({ row, run: currentRun, ...figures });
  process.stdout.write(`${line}\n`);
  if (process.env.FAULTS_REPORT !== undefined) appendFileSync(process.env.FAULTS_REPORT, `${line}\n`);
}
