/** Runs before each test file, in its process: notes how much processor time the file takes, which script/tally-reporter.ts prints. */
import { afterAll } from 'vitest';
import { processorSeconds } from './processor-time.ts';

declare module 'vitest' {
  interface TaskMeta {
    processorSeconds?: number;
  }
}

const before = processorSeconds();

// Registered first, and so run last: what a file started has ended by then.
// biome-ignore lint/correctness/noEmptyPattern: vitest reads there which fixtures are asked for
afterAll(({}, suite) => {
  const after = processorSeconds();
  if (before !== undefined && after !== undefined) suite.file.meta.processorSeconds = after - before;
});
