import { defineConfig } from 'vitest/config';

/** What script/test-containers runs, and script/test does not: it takes a container engine and the images. */
export default defineConfig({
  test: {
    name: 'containers',
    include: ['test/containers/**/*.test.ts'],
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // Each file starts a stack of its own, on two cores.
    maxWorkers: 1,
    reporters: [
      'default',
      ['./script/tally-reporter.ts', { endedFile: '.cache/failed-container-tests.json', again: false }],
    ],
  },
});
