/**
 * Plants each fault of test/planted in a scratch copy of the checkout, one after the other, and runs tests until one fails: those that the
 * fault names, then the whole core, then what `--all` adds. Prints a row for each fault, and ends with 1 when one was missed, or no longer applies.
 *
 *   script/planted                 all of them
 *   script/planted --only TEXT     those whose name contains it; may be given several times
 *   script/planted --check         only looks whether each applies, and its tests exist
 *   script/planted --no-all        runs the named tests alone
 *   script/planted --jobs N        N copies at a time; default 1
 *   script/planted --suite DIR     in the code of another checkout, with its tests
 *   script/planted --trust         does not run the named tests without a fault first
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Fault } from '../test/planted/fault.ts';
import { faults } from '../test/planted/faults.ts';
import { type Planted, Sources } from '../test/planted/place.ts';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [''] },
    suite: { type: 'string', default: join(import.meta.dirname, '..') },
    jobs: { type: 'string', default: '1' },
    check: { type: 'boolean', default: false },
    trust: { type: 'boolean', default: false },
    'no-all': { type: 'boolean', default: false },
  },
});
const suite = resolve(options.suite);

/** A run that hangs has noticed the fault as well, only late. */
const LONGEST_NAMED_MS = 15 * 60_000;
const LONGEST_RUN_MS = 60 * 60_000;
/** What git does not know of and tests need. */
const UNTRACKED = ['node_modules', '.node', '.ffmpeg', 'web/dist', 'web/reference/scalar.js'];

type Project = 'core' | 'all';

interface Outcome {
  /** The file whose test failed, and how; undefined when none did. */
  readonly caught: string | undefined;
}

interface Copy {
  readonly folder: string;
  readonly root: string;
}

const children = new Set<ChildProcess>();
const folders = new Set<string>();

const say = (line: string): boolean => process.stdout.write(`${line}\n`);

/** The runs that a file's name says that it takes part in (vitest.config.ts). */
function projectsOf(test: string): readonly string[] {
  const named = /\.([a-z-]+)\.test\.ts$/.exec(test)?.[1]?.split('-') ?? [];
  return named.length > 0 ? named : ['core'];
}

function testsOf({ tests, testsBefore = [] }: Fault): readonly string[] {
  const there = tests.filter((test) => existsSync(join(suite, test)));
  return there.length === tests.length ? tests : [...new Set([...there, ...testsBefore])];
}

/** Where each fault goes. @throws Error with a line for each that does not apply */
function placed(chosen: readonly Fault[]): Map<Fault, Planted> {
  const sources = new Sources(suite);
  const places = new Map<Fault, Planted>();
  const wrong: string[] = [];
  if (new Set(faults.map(({ name }) => name)).size < faults.length) wrong.push('two faults have one name');
  for (const fault of chosen) {
    try {
      places.set(fault, sources.plant(fault));
    } catch (error) {
      wrong.push(error instanceof Error ? error.message : String(error));
    }
    const tests = testsOf(fault);
    if (tests.length === 0) wrong.push(`${fault.name}: none of its tests is there`);
    for (const test of tests.filter((one) => !existsSync(join(suite, one)))) {
      wrong.push(`${fault.name}: there is no ${test}`);
    }
  }
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  return places;
}

async function copyOf(): Promise<Copy> {
  const folder = await mkdtemp(join(tmpdir(), 'planted-'));
  folders.add(folder);
  const root = join(folder, 'copy');
  const listed = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: suite });
  for (const path of listed.stdout.toString().split('\0').filter(Boolean)) {
    if (existsSync(join(suite, path)))
      await cp(join(suite, path), join(root, path), { verbatimSymlinks: true });
  }
  await mkdir(join(folder, 'tmp'));
  for (const path of UNTRACKED.filter((one) => existsSync(join(suite, one)))) {
    const [from, to] = [join(suite, path), join(root, path)];
    await mkdir(dirname(to), { recursive: true });
    // Linked where the file system can.
    if (spawnSync('cp', ['-al', from, to]).status === 0) continue;
    await rm(to, { recursive: true, force: true });
    if (spawnSync('cp', ['-a', from, to]).status !== 0) throw new Error(`${from} could not be copied`);
  }
  return { folder, root };
}

/** Runs a command in the copy to its end; whatever it leaves running is ended too. */
async function run(
  { folder, root }: Copy,
  args: readonly string[],
  longestMs: number,
): Promise<'ended' | 'hung'> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, TMPDIR: join(folder, 'tmp'), NODE_COMPILE_CACHE: join(root, '.cache/node') },
  });
  children.add(child);
  let ending: 'ended' | 'hung' = 'ended';
  const patience = setTimeout(() => {
    ending = 'hung';
    end(child);
  }, longestMs);
  await new Promise((done) => child.once('close', done));
  clearTimeout(patience);
  end(child);
  children.delete(child);
  return ending;
}

function end({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

interface Report {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** @throws Error when vitest could not start */
async function vitest(
  copy: Copy,
  project: Project,
  tests: readonly string[],
  isNamed: boolean,
): Promise<Outcome> {
  const report = join(copy.folder, 'report.json');
  await rm(report, { force: true });
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', project, '--bail', '1'];
  args.push('--reporter', 'json', '--outputFile', report, ...tests);
  const ending = await run(copy, args, isNamed ? LONGEST_NAMED_MS : LONGEST_RUN_MS);
  await rm(join(copy.folder, 'tmp'), { recursive: true, force: true });
  await mkdir(join(copy.folder, 'tmp'));
  if (ending === 'hung') return { caught: `${tests[0] ?? project} (did not end)` };
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`vitest said nothing of ${tests.join(' ') || `the ${project}`}`);
  const { success, testResults } = JSON.parse(text) as Report;
  const isFailed = ({ status }: { readonly status: string }): boolean => status === 'failed';
  const failed = testResults.filter(isFailed);
  const file = failed.find(({ assertionResults }) => assertionResults.some(isFailed));
  if (file !== undefined) {
    const test = file.assertionResults.find(isFailed)?.fullName ?? '';
    return { caught: `${relative(copy.root, file.name)}: ${test}` };
  }
  const [broken] = failed;
  if (broken !== undefined) return { caught: `${relative(copy.root, broken.name)} (did not load)` };
  if (testResults.length === 0) throw new Error(`vitest found no tests in ${tests.join(' ')}`);
  return { caught: success ? undefined : `${tests[0] ?? project} (an error outside of any test)` };
}

/** The named files that run in the core, and of the others those that run in `all`. */
async function runNamed(copy: Copy, tests: readonly string[]): Promise<Outcome> {
  const ofCore = tests.filter((test) => projectsOf(test).includes('core'));
  const others = tests.filter((test) => !ofCore.includes(test));
  const inCore = ofCore.length === 0 ? { caught: undefined } : await vitest(copy, 'core', ofCore, true);
  if (inCore.caught !== undefined || others.length === 0) return inCore;
  return vitest(copy, 'all', others, true);
}

async function tryFault(copy: Copy, fault: Fault, { path, before, after }: Planted): Promise<Outcome> {
  const file = join(copy.root, path);
  const isPage = /(^|\/)web\//.test(path);
  const write = async (text: string): Promise<void> => {
    await writeFile(file, text);
    if (isPage) await run(copy, ['script/build-web.ts'], LONGEST_NAMED_MS);
  };
  await write(after);
  try {
    const named = await runNamed(copy, testsOf(fault));
    if (named.caught !== undefined || options['no-all']) return named;
    const inCore = await vitest(copy, 'core', [], false);
    return inCore.caught === undefined ? await vitest(copy, 'all', [], false) : inCore;
  } finally {
    await write(before);
  }
}

async function main(): Promise<number> {
  const chosen = faults.filter(({ name }) => options.only.some((text) => name.includes(text)));
  const places = placed(chosen);
  say(`${chosen.length} faults apply`);
  if (options.check) return 0;
  const copies = await Promise.all(Array.from({ length: Number(options.jobs) }, copyOf));
  const [first] = copies;
  if (first === undefined) throw new Error('--jobs: give 1 or more');
  if (!options.trust) {
    const { caught } = await runNamed(first, [...new Set(chosen.flatMap(testsOf))]);
    if (caught !== undefined)
      throw new Error(`without any fault a test fails, so nothing would be proven: ${caught}`);
  }
  say('| Fault | Promise | Caught by | Seconds |\n|---|---|---|---|');
  const missed: string[] = [];
  const rest = chosen.values();
  const work = async (copy: Copy): Promise<void> => {
    for (const fault of rest) {
      const beganMs = performance.now();
      const { caught = 'MISSED' } = await tryFault(copy, fault, places.get(fault) as Planted);
      if (caught === 'MISSED') missed.push(fault.name);
      const seconds = Math.round((performance.now() - beganMs) / 1000);
      const row = [fault.name, fault.promise, caught, seconds].map((cell) =>
        String(cell).replaceAll('|', '\\|'),
      );
      say(`| ${row.join(' | ')} |`);
    }
  };
  await Promise.all(copies.map(work));
  say(
    `${chosen.length - missed.length} caught, ${missed.length} missed${missed.map((name) => `\n  ${name}`).join('')}`,
  );
  return missed.length === 0 ? 0 : 1;
}

async function clean(): Promise<void> {
  for (const child of children) end(child);
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => void clean().finally(() => process.exit(code)));
}
try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
} finally {
  await clean();
}
