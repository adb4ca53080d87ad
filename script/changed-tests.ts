/**
 * Prints the test files that are nearest to what has changed: since the commit given, else in the working tree, else in the last commit. A file's nearest
 * tests are those that import it; where none does, those that import a file that imports it, and so on.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const CODE = /\.(ts|tsx|lua)$/;
const TEST = /\.test\.ts$/;
const LONG = /\.long\.test\.ts$/;

/** What is not only imported, and which tests read it. */
const READERS: readonly (readonly [RegExp, RegExp])[] = [
  [/^(deploy\/|Dockerfile$|docker-compose\.yml$)/, /^test\/deploy\/.*\.test\.ts$/],
  [/\.lua$/, /^test\/redis\/scripts\.test\.ts$/],
  [/^(docs|examples)\/|\.md$/, /^test\/docs\/[^.]+\.test\.ts$/],
];

function git(...args: string[]): string[] {
  const output = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  return output.split('\n').filter((line) => line !== '');
}

function changedSince(commit: string): string[] {
  return git('diff', '--name-only', commit);
}

function changed(): string[] {
  const commit = process.argv[2];
  const untracked = git('ls-files', '--others', '--exclude-standard');
  if (commit !== undefined) return [...changedSince(commit), ...untracked];
  const now = [...changedSince('HEAD'), ...untracked];
  return now.length > 0 ? now : changedSince('HEAD~1');
}

/** Behind a door of a package; all of them are named for their files. */
function fileBehind(door: string): string {
  const [, name, file = 'index'] = /^soundpost-([^/]+)(?:\/(.+))?$/.exec(door) ?? [];
  return `packages/${name}/src/${file.endsWith('.lua') ? file : `${file}.ts`}`;
}

/** Which files import a file, or load or include a script. */
function importers(files: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of files) {
    if (!CODE.test(file) || !existsSync(join(ROOT, file))) continue;
    const text = readFileSync(join(ROOT, file), 'utf8');
    const paths = file.endsWith('.lua')
      ? text.matchAll(/^-- include: (\S+)$/gm)
      : text.matchAll(/(?:from|import\(|import|new URL\() ?'((?:\.|soundpost-)[^']+)'/g);
    for (const [, path = ''] of paths) {
      const imported = path.startsWith('soundpost-')
        ? fileBehind(path)
        : normalize(join(dirname(file), path));
      found.set(imported, [...(found.get(imported) ?? []), file]);
    }
  }
  return found;
}

function nearestTests(file: string, importersOf: Map<string, string[]>): string[] {
  const seen = new Set([file]);
  let ring = [file];
  while (ring.length > 0) {
    const tests = ring.filter((path) => TEST.test(path));
    if (tests.length > 0) return tests;
    ring = ring.flatMap((path) => importersOf.get(path) ?? []).filter((path) => !seen.has(path));
    for (const path of ring) seen.add(path);
  }
  return [];
}

const all = [...git('ls-files'), ...git('ls-files', '--others', '--exclude-standard')];
const importersOf = importers(all);
const chosen = new Set<string>();
for (const file of changed()) {
  for (const test of nearestTests(file, importersOf)) chosen.add(test);
  for (const [read, readers] of READERS) {
    if (!read.test(file)) continue;
    for (const test of all.filter((path) => readers.test(path))) chosen.add(test);
  }
}
for (const test of [...chosen].sort()) {
  if (existsSync(join(ROOT, test)) && !LONG.test(test) && !test.startsWith('test/containers/')) {
    process.stdout.write(`${test}\n`);
  }
}
