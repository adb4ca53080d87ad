/**
 * How large the house is: files and lines of src, exported type names, dependencies, and what of src one run of the demo loads and runs.
 * `node script/house-figures.ts [--files] [folder]`; the folder is another checkout with its packages installed, default this one.
 * With --files each loaded file follows, with how many of its lines ran. Needs what `script/bootstrap` brings.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** What V8 writes into NODE_V8_COVERAGE. Inner ranges follow those that they lie in. */
interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly Range[] }[];
  }[];
}
interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { files: { type: 'boolean', default: false } },
});
const root = resolve(positionals[0] ?? join(import.meta.dirname, '..'));
const linesOf = (text: string): string[] => text.replace(/\n$/, '').split('\n');

const sources = new Map(
  execFileSync('git', ['ls-files', 'src/*.ts'], { cwd: root, encoding: 'utf8' })
    .trimEnd()
    .split('\n')
    .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
);
const all = [...sources.values()];
const typeNames = new Set(
  all.flatMap((text) => text.match(/(?<=^export (abstract )?(class|interface|type) )\w+/gm) ?? []),
);
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const loaded = linesRunByDemo();
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const loadedLines = sum([...loaded.keys()].map((path) => linesOf(sources.get(path) ?? '').length));
const ranLines = sum([...loaded.values()].map((ran) => ran.filter(Boolean).length));

const rows = [
  ['files of src', all.length],
  ['lines of src', sum(all.map((text) => linesOf(text).length))],
  ['exported type names, classes among them', typeNames.size],
  ['dependencies', Object.keys(dependencies).length],
  ['files of src that the demo loads', loaded.size],
  ['lines of these files', loadedLines],
  ['of these lines the demo runs', `${ranLines} (${percent(ranLines, loadedLines)})`],
];
for (const [name, figure] of rows) process.stdout.write(`${name}: ${figure}\n`);
if (values.files) {
  for (const [path, ran] of [...loaded].sort(([a], [b]) => a.localeCompare(b))) {
    process.stdout.write(`${path} ${percent(ran.filter(Boolean).length, ran.length)} of ${ran.length}\n`);
  }
}

function percent(part: number, whole: number): string {
  return `${Math.round((100 * part) / Math.max(whole, 1))} %`;
}

/** Of each file that a process of the demo loaded: its lines with code, and whether each ran. */
function linesRunByDemo(): Map<string, boolean[]> {
  const folder = mkdtempSync(join(tmpdir(), 'soundpost-figures-'));
  try {
    execFileSync(process.execPath, [join(root, 'script/demo.ts'), '--once'], {
      cwd: folder,
      env: { ...process.env, NODE_V8_COVERAGE: join(folder, 'coverage') },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const ran = new Map<string, boolean[]>();
    for (const name of readdirSync(join(folder, 'coverage'))) {
      const { result }: Coverage = JSON.parse(readFileSync(join(folder, 'coverage', name), 'utf8'));
      for (const { url, functions } of result) {
        const path = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : '';
        const text = sources.get(path);
        if (text === undefined) continue;
        const lines = linesRun(text, functions);
        const before = ran.get(path) ?? lines;
        ran.set(
          path,
          lines.map((line, index) => line || before[index] === true),
        );
      }
    }
    return ran;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Node blanks types out and leaves every character where it was, so the offsets are those of the source. */
function linesRun(text: string, functions: Coverage['result'][number]['functions']): boolean[] {
  const runs = new Uint8Array(text.length);
  const ranges = functions.flatMap((one) => one.ranges);
  // The outer range first, so that the inner one has the last word.
  for (const { startOffset, endOffset, count } of ranges.sort(
    (a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset,
  )) {
    runs.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  }
  let offset = 0;
  return linesOf(text).flatMap((line) => {
    const begin = offset + line.search(/\S|$/);
    offset += line.length + 1;
    const isCode = /\S/.test(line) && !/^\s*(\/\/|\/?\*)/.test(line);
    return isCode ? [runs[begin] === 1] : [];
  });
}
