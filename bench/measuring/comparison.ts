/** What a row of docs/performance.md is made of: figures of two ways of doing the same, taken in turns in the same run. */
import { parseArgs } from 'node:util';
import { z } from 'zod';

const Reach = z.object({ atMost: z.number() }).or(z.object({ atLeast: z.number() }));
/** What was promised of a figure. */
export type Reach = z.infer<typeof Reach>;

/** A figure that goes with a row: bytes, a deviation, a percentile. */
const Remark = z.object({
  what: z.string(),
  value: z.number(),
  unit: z.string(),
  reach: Reach.nullable().default(null),
});

export const Row = z.object({
  /** As in the table: what is done. */
  what: z.string(),
  /** What it is compared with; null: with nothing, and the promise is about the figure itself. */
  against: z.string().nullable(),
  /** Of each figure: `s`, `/s`, `jobs/min`, `MiB`. */
  unit: z.string(),
  ours: z.array(z.number()).min(1),
  /** In the order of `ours`, taken beside it; empty where there is nothing to compare with. */
  theirs: z.array(z.number()),
  /** Of the median of the ratios ours / theirs; without a comparison of the median of `ours`. */
  reach: Reach.nullable(),
  remarks: z.array(Remark).default([]),
});
export type Row = z.infer<typeof Row>;

/** @returns the middle one; of an even number the mean of the two in the middle; NaN of none */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low = Number.NaN, high = low] = sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1);
  return (low + high) / 2;
}

/** The figure that a promise is about. */
export function figureOf({ ours, theirs }: Pick<Row, 'ours' | 'theirs'>): number {
  return theirs.length === 0
    ? median(ours)
    : median(ours.map((value, nth) => value / (theirs[nth] ?? Number.NaN)));
}

/** For the reader: `1,000,000`. */
export function grouped(value: number, digits = 0): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function isReached(value: number, reach: Reach): boolean {
  return 'atMost' in reach ? value <= reach.atMost : value >= reach.atLeast;
}

/** Numbers from the command line, such as `--runs 5`; each has a default and there are no others. */
export function askedFor<const Name extends string>(
  defaults: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const entries = Object.entries<number>(defaults);
  const options = Object.fromEntries(entries.map(([name]) => [name, { type: 'string' as const }]));
  const { values } = parseArgs({ options });
  const asked = entries.map(([name, usual]) => {
    const value = Number(values[name] ?? usual);
    if (!(value > 0)) throw new Error(`--${name} has to be a number above 0`);
    return [name, value];
  });
  return Object.fromEntries(asked) as Record<Name, number>;
}

/** One way of doing it: @returns its figure. */
type Way = () => Promise<number>;

/**
 * Both ways in turns, the one first and then the other one first, so that what changes on the machine meanwhile meets both.
 * @param warmUp whether each is done once before, uncounted, for caches and compilers; default yes. Beside a run of a minute they are nothing
 */
export async function inTurns(
  runs: number,
  ours: Way,
  theirs: Way,
  { warmUp = true } = {},
): Promise<{ ours: number[]; theirs: number[] }> {
  if (warmUp) {
    await ours();
    await theirs();
  }
  const figures = { ours: [] as number[], theirs: [] as number[] };
  for (let nth = 0; nth < runs; nth += 1) {
    if (nth % 2 === 0) figures.ours.push(await ours());
    figures.theirs.push(await theirs());
    if (nth % 2 === 1) figures.ours.push(await ours());
  }
  return figures;
}

/** Wall-clock seconds. */
export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const begunAt = performance.now();
  await work();
  return (performance.now() - begunAt) / 1000;
}

/** Prints a row: JSON on standard output for `script/bench`, and a line for people on standard error. */
export function printRow(row: z.input<typeof Row>): void {
  const { what, unit, ours, theirs, reach, remarks } = Row.parse(row);
  process.stdout.write(`${JSON.stringify(row)}\n`);
  const promise =
    reach === null ? '' : ` (${isReached(figureOf({ ours, theirs }), reach) ? 'reached' : 'MISSED'})`;
  const against =
    theirs.length === 0
      ? ''
      : ` against ${median(theirs).toPrecision(3)} ${unit}: ${figureOf({ ours, theirs }).toFixed(3)}`;
  const more = remarks.map(
    (remark) => `; ${remark.what} ${Number(remark.value.toPrecision(3))} ${remark.unit}`,
  );
  process.stderr.write(
    `${what}: ${median(ours).toPrecision(3)} ${unit}${against}${promise}${more.join('')}\n`,
  );
}
