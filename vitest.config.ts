import { defineConfig } from 'vitest/config';

/** Files that start whole services and load them: after the others. What they do most is wait: for locks to run out, for processes to start. */
const whole = ['test/end-to-end/**/*.test.ts', 'test/faults/**/*.test.ts', 'test/hosts/**/*.test.ts'];

/** script/test-containers runs them (vitest.containers.config.ts). */
const containers = 'test/containers/**/*.test.ts';

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
          exclude: [...whole, containers],
          // On two cores: many of them wait for Redis, for sockets and for other processes.
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: whole,
          maxWorkers: 3,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
