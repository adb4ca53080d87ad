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
 *   script/planted --twice         counts a fault as caught when the named tests fail twice: a test that fails now and then proves nothing
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
    twice: { type: 'boolean', default: false },
    'no-all': { type: 'boolean', default: false },
  },
});
const suite = resolve(options.suite);

/** A run that hangs has noticed the fault as well, only late. */
const LONGEST_NAMED_MS = 15 * 60_000;
const LONGEST_RUN_MS = 60 * 60_000;
/** What git does not know of and tests need: linked where the file system can, since nothing writes there, or copied. */
const LINKED = ['node_modules', '.node', '.ffmpeg'];
const COPIED = ['web/dist', 'web/reference/scalar.js'];

/** The file and the test that failed; undefined when none did. */
type Caught = string | undefined;

interface Copy {
  readonly folder: string;
  readonly root: string;
}

let isStopping = false;
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
  const untracked = [...LINKED, ...COPIED].filter((path) => existsSync(join(suite, path)));
  for (const path of untracked) {
    const [from, to] = [join(suite, path), join(root, path)];
    await mkdir(dirname(to), { recursive: true });
    if (LINKED.includes(path) && spawnSync('cp', ['-al', from, to]).status === 0) continue;
    await rm(to, { recursive: true, force: true });
    if (spawnSync('cp', ['-a', from, to]).status !== 0) throw new Error(`${from} could not be copied`);
  }
  return { folder, root };
}

/** Runs a command in the copy, and ends what it leaves running. @returns whether it came to its end in time */
async function run({ folder, root }: Copy, args: readonly string[], longestMs: number): Promise<boolean> {
  const env = { ...process.env, TMPDIR: join(folder, 'tmp'), NODE_COMPILE_CACHE: join(root, '.cache/node') };
  const child = spawn(process.execPath, args, { cwd: root, detached: true, stdio: 'ignore', env });
  children.add(child);
  let isInTime = true;
  const patience = setTimeout(() => {
    isInTime = false;
    end(child);
  }, longestMs);
  await new Promise((done) => child.once('close', done));
  clearTimeout(patience);
  end(child);
  children.delete(child);
  return isInTime;
}

/** A test that ends early may leave something mounted there. */
async function removed(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mounts', 'utf8').catch(() => '');
  const below = mounts.split('\n').flatMap((line) => line.split(' ')[1] ?? []);
  for (const place of below.filter((path) => path.startsWith(`${folder}/`)).reverse()) {
    spawnSync('umount', ['--lazy', place]);
  }
  await rm(folder, { recursive: true, force: true });
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
async function vitest(copy: Copy, project: 'core' | 'all', tests: readonly string[]): Promise<Caught> {
  const report = join(copy.folder, 'report.json');
  await rm(report, { force: true });
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', project, '--bail', '1'];
  args.push('--reporter', 'json', '--outputFile', report, ...tests);
  const isInTime = await run(copy, args, tests.length > 0 ? LONGEST_NAMED_MS : LONGEST_RUN_MS);
  await removed(join(copy.folder, 'tmp'));
  await mkdir(join(copy.folder, 'tmp'));
  const what = tests.join(' ') || `the ${project}`;
  if (!isInTime) return `${what} (did not end)`;
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`vitest could not run ${what}`);
  const { success, testResults } = JSON.parse(text) as Report;
  if (testResults.length === 0) throw new Error(`vitest found no tests in ${what}`);
  const failed = testResults.filter(isFailed);
  const file = failed.find(({ assertionResults }) => assertionResults.some(isFailed)) ?? failed[0];
  if (file === undefined) return success ? undefined : `${what} (an error outside of any test)`;
  const test = file.assertionResults.find(isFailed)?.fullName ?? '(did not load)';
  return `${relative(copy.root, file.name)}: ${test}`;
}

const isFailed = ({ status }: { readonly status: string }): boolean => status === 'failed';

/** The named files that run in the core, then those that have more rows, or all of theirs, in `all`. */
async function runNamed(copy: Copy, tests: readonly string[]): Promise<Caught> {
  const [ofCore = [], ofAll = []] = (['core', 'all'] as const).map((project) =>
    tests.filter((test) => projectsOf(test).includes(project)),
  );
  const inCore = ofCore.length === 0 ? undefined : await vitest(copy, 'core', ofCore);
  return inCore !== undefined || ofAll.length === 0 ? inCore : vitest(copy, 'all', ofAll);
}

async function tryFault(copy: Copy, fault: Fault, { path, before, after }: Planted): Promise<Caught> {
  const write = async (text: string): Promise<void> => {
    await writeFile(join(copy.root, path), text);
    if (/(^|\/)web\//.test(path)) await run(copy, ['script/build-web.ts'], LONGEST_NAMED_MS);
  };
  await write(after);
  try {
    const first = await runNamed(copy, testsOf(fault));
    const named = first !== undefined && options.twice ? await runNamed(copy, testsOf(fault)) : first;
    if (named !== undefined || options['no-all']) return named;
    return (await vitest(copy, 'core', [])) ?? (await vitest(copy, 'all', []));
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
  const failing = options.trust ? undefined : await runNamed(first, [...new Set(chosen.flatMap(testsOf))]);
  if (failing !== undefined)
    throw new Error(`without any fault a test fails, so none proves anything: ${failing}`);
  say('| Fault | Promise | Caught by | Seconds |\n|---|---|---|---|');
  const missed: string[] = [];
  const rest = chosen.values();
  const work = async (copy: Copy): Promise<void> => {
    for (const fault of rest) {
      const beganMs = performance.now();
      const { name, promise } = fault;
      // Without vitest nothing is proven, but the other faults may still be tried.
      const caught = await tryFault(copy, fault, places.get(fault) as Planted).catch(
        ({ message }: Error) => new Error(`NOT TRIED: ${message}`),
      );
      if (isStopping) return;
      const isCaught = typeof caught === 'string';
      if (!isCaught) missed.push(name);
      const seconds = Math.round((performance.now() - beganMs) / 1000);
      const cells = [name, promise, isCaught ? caught : (caught?.message ?? 'MISSED'), String(seconds)];
      say(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
    }
  };
  await Promise.all(copies.map(work));
  if (isStopping) return 1;
  const names = missed.map((name) => `\n  ${name}`).join('');
  say(`${chosen.length - missed.length} caught, ${missed.length} missed or not tried${names}`);
  return missed.length === 0 ? 0 : 1;
}

async function clean(): Promise<void> {
  isStopping = true;
  for (const child of children) end(child);
  for (const folder of folders) await removed(folder);
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
