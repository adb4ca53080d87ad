import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends a run with the time of each project, and one plain line, `N passed, N failed`, for whoever reads the output by program. A file that
 * could not be loaded, and an error outside of any test, each count as a failure, so that `0 failed` means a good run. Before them stands
 * what was skipped for a reason that the test gave, such as a machine that has not what it needs.
 */
export default class TallyReporter implements Reporter {
  /** When the last file of each project ended, in ms since the process began. Projects follow one another (vitest.config.ts). */
  readonly #endedMs = new Map<string, number>();

  onTestModuleEnd({ project }: TestModule): void {
    this.#endedMs.delete(project.name);
    this.#endedMs.set(project.name, performance.now());
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    const failedTests = tests.filter((test) => test.result().state === 'failed').length;
    const brokenSuites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const failedOtherwise = brokenSuites.filter((suite) => suite.errors().length > 0).length;
    const failed = failedTests + failedOtherwise + unhandledErrors.length;
    const reasons = tests.flatMap((test) => {
      const result = test.result();
      return result.state === 'skipped' && result.note ? [`skipped: ${test.fullName}: ${result.note}\n`] : [];
    });
    const times = this.#times();
    // At the exit, because the other reporters may still be writing.
    process.once('exit', () =>
      process.stdout.write(`${[...reasons, ...times].join('')}${passed} passed, ${failed} failed\n`),
    );
  }

  #times(): string[] {
    let beganMs = 0;
    return [...this.#endedMs].map(([name, endedMs]) => {
      const seconds = Math.round((endedMs - beganMs) / 1000);
      beganMs = endedMs;
      return `${name} took ${seconds} s\n`;
    });
  }
}
