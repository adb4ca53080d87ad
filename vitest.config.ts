import { tags } from 'soundpost-testing/needs';
import { defineConfig } from 'vitest/config';

/**
 * The runs, in the order in which they follow one another. A test file's name says in which it takes part: `sniff.test.ts` in the core
 * alone, `corpus.all.test.ts` in `all` alone, `formats.core-all.test.ts` in both, with other rows in each (`packages/testing/src/by-run.ts`).
 */
const runs = ['core', 'all', 'long'] as const;

type Run = (typeof runs)[number];

declare module 'vitest' {
  interface ProvidedContext {
    readonly run: Run;
  }
}

function filesOf(run: Run): string[] {
  const folders = '{test,packages/*/test}/**';
  const named = `${folders}/*.?(*-)${run}?(-*).test.ts`;
  return run === 'core' ? [`${folders}/+([^.]).test.ts`, named] : [named];
}

export default defineConfig({
  test: {
    // Patience alone: several processes may start in one of them, on a machine that does four at a time.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // As long as `until` waits: vitest's own second is less than a busy machine may need.
    expect: { poll: { timeout: 60_000 } },
    // What tests need of the machine; where it is missing they are left out.
    tags: tags(),
    setupFiles: ['script/measure-file.ts'],
    reporters: [
      'default',
      [
        './script/tally-reporter.ts',
        { endedFile: '.cache/failed-tests.json', again: process.env.TEST_AGAIN === '1' },
      ],
    ],
    projects: runs.map((run, groupOrder) => ({
      extends: true,
      test: {
        name: run,
        include: filesOf(run),
        // script/test-containers runs them (vitest.containers.config.ts).
        exclude: ['test/containers/**'],
        provide: { run },
        sequence: { groupOrder },
        // A process runs many files of the core and loads the code once: a fifth less processor time.
        isolate: run !== 'core',
        // On two cores: many of them wait for Redis, for sockets and for other processes.
        maxWorkers: run === 'core' ? 4 : 3,
      },
    })),
  },
});
