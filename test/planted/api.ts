/** What the API promises to those who submit, ask and download. */
import type { Fault } from './fault.ts';

export const apiFaults: readonly Fault[] = [
  {
    name: 'range-ends-one-early',
    promise: 'api.md "Fetch": ranges (206) hold exactly the bytes that were asked for',
    in: 'rangeOf',
    search: 'Math.min(Number(last), sizeBytes - 1)',
    replace: 'Math.min(Number(last) - 1, sizeBytes - 1)',
    tests: ['test/api/downloads.test.ts'],
  },
];
