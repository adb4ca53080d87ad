/**
 * How large the house is, without its tests. `node script/house-figures.ts [folder]`; the folder
 * is another checkout with its packages installed, default this one.
 * docs/decisions/0045-parts-with-doors.md has the figures of before and after, and
 * test/house/figures.all.test.ts holds them as ceilings.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { functionsOf } from './functions-of.ts';
import { walkOfJob } from './job-walk.ts';

export interface Figures {
  /** Of src and packages. */
  readonly files: number;
  readonly lines: number;
  /** Of a package, or of a folder of src. */
  readonly linesOfLargestPart: number;
  /** Classes among them. */
  readonly exportedTypeNames: number;
  readonly linesOfLongestFunction: number;
  /** Of more than 100 columns. */
  readonly longCommentLines: number;
  /** That npm installs for production, without those of other platforms. */
  readonly packages: number;
}

export function figuresOf(root: string): Figures {
  const tracked = ['src/*.ts', 'packages/*/src/*.ts'];
  const paths = execFileSync('git', ['ls-files', ...tracked], { cwd: root, encoding: 'utf8' })
    .trimEnd()
    .split('\n');
  const sources = paths
    .filter((path) => !path.startsWith('packages/testing/'))
    .map((path) => ({ path, source: readFileSync(join(root, path)) }))
    .map(({ path, source }) => ({ path, source, text: source.toString() }));
  const lines = (text: string): number => text.split('\n').length - 1;
  const ofParts = new Map<string, number>();
  for (const { path, text } of sources) {
    const part = path.split('/').slice(0, 2).join('/');
    ofParts.set(part, (ofParts.get(part) ?? 0) + lines(text));
  }
  const names = sources.flatMap(
    ({ text }) => text.match(/(?<=^export (abstract )?(class|interface|type) )\w+/gm) ?? [],
  );
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const installed = Object.entries<{ dev?: boolean; link?: boolean; optional?: boolean }>(
    lock.packages,
  ).filter(
    ([path, { dev, link, optional }]) => path.startsWith('node_modules/') && !dev && !link && !optional,
  );
  return {
    files: sources.length,
    lines: sources.reduce((sum, { text }) => sum + lines(text), 0),
    linesOfLargestPart: Math.max(...ofParts.values()),
    exportedTypeNames: new Set(names).size,
    linesOfLongestFunction: Math.max(
      ...sources.flatMap(({ source }) => functionsOf(source).map((found) => found.lines)),
    ),
    longCommentLines: sources
      .flatMap(({ text }) => text.match(/^ *(\*|\/\*|\/\/).{90,}/gm) ?? [])
      .filter((line) => line.length > 100).length,
    packages: installed.length,
  };
}

if (import.meta.main) {
  const root = resolve(process.argv[2] ?? join(import.meta.dirname, '..'));
  const { loaded, ran } = await walkOfJob(root);
  const figures = { ...figuresOf(root), filesLoaded: loaded.length, filesRunByJob: ran.length };
  for (const [name, figure] of Object.entries(figures)) process.stdout.write(`${name}: ${figure}\n`);
}
