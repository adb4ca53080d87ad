/** A planted fault: a small change that breaks one promise, and the tests that should fail then. */
export interface Fault {
  /** Lower case, with dashes; unique. */
  readonly name: string;
  /** Where something is promised, and what: `failure.md: the webhook comes once`. */
  readonly promise: string;
  /**
   * The function that it is planted in: `name`, `Class.method`, `Class.#method`, or the name of a constant; of a Lua script the name of its file,
   * `reserve.lua`. The path of its file is not said, so that a fault survives a move.
   */
  readonly in: string;
  /** Code that stands exactly once in all functions, or files, of that name; any white space matches any other. */
  readonly search: string;
  readonly replace: string;
  /** The test files that should catch it: the fewest and cheapest. */
  readonly tests: readonly string[];
  /** In place of those of `tests` that an older checkout does not have (`script/planted --suite`). */
  readonly testsBefore?: readonly string[];
}
