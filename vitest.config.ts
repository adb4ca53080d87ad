import { defineConfig } from 'vitest/config';

/** Files that start whole services and load them: after the others. What they do most is wait: for locks to run out, for processes to start. */
const whole = ['test/end-to-end/**/*.test.ts', 'test/faults/**/*.test.ts', 'test/hosts/**/*.test.ts'];

/** script/test-containers runs them (vitest.containers.config.ts). */
const containers = 'test/containers/**/*.test.ts';

export default defineConfig({
  test: {
    // Patience alone: several processes may start in one of them, on a machine that does three at a time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // As long as `until` waits: vitest's own second is less than a busy machine may need.
    expect: { poll: { timeout: 20_000 } },
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
