import { defineConfig } from 'vitest/config';

/** Files that start whole processes and load them: one at a time, after the others, so that none waits for a core. */
const whole = ['test/end-to-end/**/*.test.ts'];
/** Whole services too, but what they do most is wait: for locks to run out, for processes to start again. */
const faults = ['test/faults/**/*.test.ts'];

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default', './script/tally-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: [...whole, ...faults],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: whole,
          maxWorkers: 1,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'faults',
          include: faults,
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
