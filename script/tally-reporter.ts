import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type {} from 'soundpost-testing/needs';
import type { Reporter, TestModule } from 'vitest/node';

const ROOT = join(import.meta.dirname, '..');

const MOST_EXPENSIVE = 10;

interface Failure {
  /** Relative to the project's folder; missing where nobody knows the file. */
  readonly file?: string;
  /** Without a name where the file itself could not be loaded, or an error came outside of any test. */
  readonly test?: string;
}

/** What a run leaves for `script/test --again`. */
interface Ended {
  readonly passed: number;
  readonly failures: readonly Failure[];
}

/**
 * Ends a run with what it cost and with one plain line, `N passed, N failed`, which programs can read. A file that could not be loaded, and an error
 * outside of any test, each count as a failure, so `0 failed` means a good run. Before that line stand the tests that were left out, with the reason.
 *
 * A run leaves its failures in `endedFile`. With `again`, the run repeats those alone and its last lines say of the first run as a whole: a test that
 * failed there and passes now is `flaky`.
 */
export default class TallyReporter implements Reporter {
  readonly #endedFile: string;
  readonly #first: Ended | undefined;
  /** When the last file of each project ended, in ms since the process began. Projects follow one another (vitest.config.ts). */
  readonly #endedMs = new Map<string, number>();

  constructor({ endedFile, again }: { readonly endedFile: string; readonly again: boolean }) {
    this.#endedFile = endedFile;
    this.#first = again ? (JSON.parse(readFileSync(endedFile, 'utf8')) as Ended) : undefined;
  }

  onTestModuleEnd({ project }: TestModule): void {
    this.#endedMs.delete(project.name);
    this.#endedMs.set(project.name, performance.now());
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    const failures = [...modules.flatMap(failuresOf), ...unhandledErrors.map(failureOf)];
    const lines = [...leftOut(modules), ...mostExpensive(modules), ...this.#times()];
    if (this.#first === undefined) {
      keep(this.#endedFile, { passed, failures });
      atExit(() => [...lines, cost(modules), `${passed} passed, ${failures.length} failed`]);
    } else {
      const { passed: passedBefore, failures: before } = this.#first;
      const flaky = failures.length === 0 ? before : [];
      const names = flaky.map(({ file, test = '(outside of any test)' }) => `flaky: ${file} ${test}`);
      const repeated = before.filter(({ test }) => test !== undefined).length;
      const total = failures.length === 0 ? passedBefore + repeated : passedBefore;
      atExit(() => [...lines, ...names, `${total} passed, ${failures.length} failed`]);
    }
  }

  #times(): string[] {
    let beganMs = 0;
    return [...this.#endedMs].map(([name, endedMs]) => {
      const seconds = Math.round((endedMs - beganMs) / 1000);
      beganMs = endedMs;
      return `${name} took ${seconds} s`;
    });
  }
}

function failuresOf(module: TestModule): Failure[] {
  const file = module.relativeModuleId;
  const failed = [...module.children.allTests()].filter((test) => test.result().state === 'failed');
  const suites = [module, ...module.children.allSuites()].filter((suite) => suite.errors().length > 0);
  return [...failed.map(({ fullName }) => ({ file, test: fullName })), ...suites.map(() => ({ file }))];
}

/** vitest notes which file was running. */
function failureOf(error: unknown): Failure {
  const path = (error as { VITEST_TEST_PATH?: string } | undefined)?.VITEST_TEST_PATH;
  return path === undefined ? {} : { file: relative(ROOT, path) };
}

/** One line a reason. */
function leftOut(modules: readonly TestModule[]): string[] {
  const counts = new Map<string, number>();
  for (const test of modules.flatMap((module) => [...module.children.allTests()])) {
    const result = test.result();
    if (result.state !== 'skipped') continue;
    // A test of another run is skipped for that, and its program may be missing besides.
    const reason = test.options.mode === 'todo' ? test.meta().leftOut : result.note;
    if (reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].map(
    ([reason, count]) => `left out: ${count} ${count === 1 ? 'test' : 'tests'}: ${reason}`,
  );
}

function mostExpensive(modules: readonly TestModule[]): string[] {
  const files = modules
    .map((module) => ({ file: module.relativeModuleId, seconds: module.meta().processorSeconds ?? 0 }))
    .filter(({ seconds }) => seconds > 0)
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, MOST_EXPENSIVE);
  return files.map(({ file, seconds }) => `${seconds.toFixed(1).padStart(6)} s of processor time: ${file}`);
}

/** The files' own time counts: of a starter that outlives vitest's worker, Linux tells nobody what its tools took. */
function cost(modules: readonly TestModule[]): string {
  const wall = `${Math.round(performance.now() / 1000)} s`;
  if (process.platform !== 'linux') return `${wall} in all`;
  const { user, system } = process.cpuUsage();
  const files = modules.map((module) => module.meta().processorSeconds ?? 0);
  const seconds = files.reduce((sum, file) => sum + file, (user + system) / 1e6);
  return `${wall} in all, ${Math.round(seconds)} s of processor time`;
}

function keep(file: string, ended: Ended): void {
  mkdirSync(dirname(file), { recursive: true });
  rmSync(file, { force: true });
  if (ended.failures.length > 0) writeFileSync(file, JSON.stringify(ended));
}

/** Behind what the other reporters write. */
function atExit(lines: () => readonly string[]): void {
  process.once('exit', () => process.stdout.write(`${lines().join('\n')}\n`));
}
