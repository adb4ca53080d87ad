/** Where one run's packets may be followed by those of the next (pure). */

/** How many packets on each side of a splice have to be the same in both runs. */
export interface SpliceRule {
  readonly before: number;
  readonly after: number;
}

/**
 * The latest place that keeps to the rule: the later, the longer the second encoder has forgotten that it began in the middle.
 * @param earlier what the packets of the earlier run say, from the place on at which the later run begins; null: cannot be told
 * @param later the same of the later run
 * @returns how many packets of the earlier run come before the splice; undefined where the runs never agree
 */
export function findSplice(
  earlier: readonly (Buffer | null)[],
  later: readonly (Buffer | null)[],
  { before, after }: SpliceRule,
): number | undefined {
  let run = 0;
  for (let at = Math.min(earlier.length, later.length) - 1; at >= 0; at -= 1) {
    const [one, other] = [earlier[at], later[at]];
    run = one && other && one.equals(other) ? run + 1 : 0;
    if (run === before + after) return at + before;
  }
  return undefined;
}
