import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends a run with one plain line, `N passed, N failed`, for whoever reads the output by program. A file that could not
 * be loaded, and an error outside of any test, each count as a failure, so that `0 failed` means a good run. Before it stands what was
 * skipped for a reason that the test gave, such as a machine that has not what it needs.
 */
export default class TallyReporter implements Reporter {
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
    // At the exit, because the other reporters may still be writing.
    process.once('exit', () =>
      process.stdout.write(`${reasons.join('')}${passed} passed, ${failed} failed\n`),
    );
  }
}
