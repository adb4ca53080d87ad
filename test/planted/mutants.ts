/**
 * Draws the mutants of mutants-drawn.ts: 40 small changes at places that one MP3 job or the eleven operations of the gateway run.
 *
 *   NODE_V8_COVERAGE=DIR node src/main.ts serve     then one job of an uploaded MP4 to mp3, its status and download, and each of the
 *                                                   eleven operations once, on a loopback instance; then SIGTERM
 *   node test/planted/mutants.ts DIR                writes mutants-drawn.ts
 *
 * Places are those that this run came by (V8's block coverage), in functions that were called. The operators take turns: a condition negated,
 * a comparison or a constant changed, a call statement removed. At most one mutant a function and two a file are drawn, by a generator of random
 * numbers with a fixed seed. What is drawn stays as it is: it is drawn anew only when somebody runs this.
 *
 * Not drawn, since nobody could tell: whatever stands on a line about logs, metrics, traces or audit, about time (timers, deadlines, anything in ms
 * or seconds), about clean-up at a shutdown; default values; files with more than ASCII, whose places V8 and swc count differently; and what
 * EQUIVALENT names, each with its reason.
 *
 * The tests of a mutant: the core files that have the name of its file, then the shortest two that import it, then those that TESTS_OF_FOLDER has
 * for its folder; three in all. Where these missed one that the core catches, the test that does was added by hand.
 * Three are missed, since they change nothing that a test could see: `endOfString` (a text ends at no character
 * as well), `Sessions.close` (its process ends) and `OrderlyClose.forget` (an answer is kept in memory).
 */
import { globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseSync } from '@swc/core';
import type { Fault } from './fault.ts';
import { type Named, namedIn } from './place.ts';

const ROOT = join(import.meta.dirname, '../..');
const SEED = 33;
const COUNT = 40;
const MOST_TESTS = 3;

const UNSEEN =
  /logger|observer|tracing|span\(|metric|audit|telemetry|Timeout|Interval|unref|Ms\b|MS\b|[sS]econds|SECONDS|Date\.now|performance\.|throwIfAborted|EventListener|\.(close|catch|destroy|resume|end|off)\(|on\('error'|\b(note|tell)\(|setMaxListeners|serviceName|describe\(|\bimport\b/;

/** Names of mutants that change nothing which anybody could see. */
const EQUIVALENT: Readonly<Record<string, string>> = {
  'mutant-negated-byte-file-bytewriter-write': 'the bytes are written all the same, in smaller pieces',
  'mutant-changed-disk-claim-diskclaim-grow': 'a byte less is asked for',
  'mutant-removed-seccomp-seccompfilter': 'what was composed once is composed again',
  'mutant-removed-connection-connectredis': 'a log says less',
};

const TESTS_OF_FOLDER: readonly (readonly [folder: RegExp, tests: readonly string[]])[] = [
  [/^src\/gateway\/inbox\//, ['test/gateway/authorisation.test.ts', 'test/gateway/inbox-page.all.test.ts']],
  [/^src\/gateway\/(event|webhooks)/, ['test/gateway/events.test.ts', 'test/gateway/webhooks.test.ts']],
  [
    /^(src\/gateway|packages\/chat)/,
    ['test/gateway/loopback-contract.test.ts', 'test/gateway/send-audio.test.ts'],
  ],
  [
    /^packages\/media\//,
    ['packages/media/test/extract.core-all.test.ts', 'packages/media/test/voice-note.core-all.test.ts'],
  ],
  [/^src\/worker\//, ['test/worker/extraction.test.ts', 'test/api/contract-job.test.ts']],
  [/^src\/jobs\/uploads\//, ['test/api/uploads.test.ts', 'test/api/multipart.test.ts']],
  [/^src\/jobs\//, ['test/jobs/extraction-consumer.test.ts', 'test/api/contract-job.test.ts']],
  [
    /^(src\/api|packages\/(contract|kit\/src\/(http|signing)))\//,
    ['test/api/contract-job.test.ts', 'test/api/contract-requests.test.ts'],
  ],
  [/./, ['test/api/contract-job.test.ts', 'test/end-to-end/three-processes.core-all.test.ts']],
];

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

interface Candidate {
  readonly path: string;
  readonly kind: 'negated' | 'changed' | 'removed';
  readonly in: string;
  readonly search: string;
  readonly replace: string;
}

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The ranges that were looked at, by file. */
function readCoverage(folder: string): Map<string, Range[]> {
  const ranges = new Map<string, Range[]>();
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    for (const { url, functions } of result) {
      const path = relative(pathToFileURL(ROOT).href, url);
      if (!/^(src|packages)\/(?!kit\/src\/observe\/).*\.ts$/.test(path)) continue;
      ranges.set(
        path,
        functions.flatMap((one: { ranges: Range[] }) => one.ranges),
      );
    }
  }
  return ranges;
}

/** What V8 says of a place: the innermost range that holds it. */
function wasRun(ranges: readonly Range[], start: number, end: number): boolean {
  const around = ranges.filter(({ startOffset, endOffset }) => startOffset <= start && end <= endOffset);
  const inner = around.reduce((one, other) =>
    other.endOffset - other.startOffset <= one.endOffset - one.startOffset ? other : one,
  );
  return inner.count > 0 && around.length > 1;
}

const OTHER: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
};

type Node = {
  readonly type: string;
  readonly span: { readonly start: number; readonly end: number };
} & Record<string, unknown>;

function candidatesOf(path: string, ranges: readonly Range[]): Candidate[] {
  const text = readFileSync(join(ROOT, path), 'utf8');
  if (Buffer.byteLength(text) !== text.length) return [];
  const named = namedIn(text, false).filter(({ isFunction }) => isFunction);
  const found: Candidate[] = [];
  const add = (kind: Candidate['kind'], start: number, end: number, instead: string): void => {
    const candidate = wasRun(ranges, start, end) ? candidateOf(text, named, start, end, instead) : undefined;
    if (candidate !== undefined) found.push({ path, kind, ...candidate });
  };
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const node = value as Node;
    if (/^AssignmentPattern|^(Class|Private)Property$/.test(node.type) && !isFunctionIn(node)) return;
    mutate(node, text, add);
    for (const child of Object.values(node)) walk(child);
  };
  walk(parseSync(text, { syntax: 'typescript', target: 'es2024' }).body);
  return found;
}

const isFunctionIn = ({ value }: Node): boolean => /Function/.test((value as Node | null)?.type ?? '');

function mutate(
  node: Node,
  text: string,
  add: (kind: Candidate['kind'], start: number, end: number, instead: string) => void,
): void {
  const [start, end] = [node.span?.start - 1, node.span?.end - 1];
  const code = text.slice(start, end);
  if (node.type === 'IfStatement' || node.type === 'ConditionalExpression') {
    const { span } = node.test as Node;
    add('negated', span.start - 1, span.end - 1, `!(${text.slice(span.start - 1, span.end - 1)})`);
  }
  const instead = OTHER[String(node.operator)];
  if (node.type === 'BinaryExpression' && instead !== undefined) {
    const [left, right] = [node.left as Node, node.right as Node];
    const between = text.slice(left.span.end - 1, right.span.start - 1);
    const changed = between.replace(String(node.operator), instead);
    add('changed', left.span.start - 1, right.span.end - 1, code.replace(between, changed));
  }
  if (node.type === 'NumericLiteral') add('changed', start, end, String(Number(node.value) + 1));
  if (node.type === 'ExpressionStatement' && /^(await )?[\w.#?]+\(/.test(code))
    add('removed', start, end, ';');
}

function candidateOf(
  text: string,
  named: readonly Named[],
  start: number,
  end: number,
  instead: string,
): Pick<Candidate, 'in' | 'search' | 'replace'> | undefined {
  const around = named.filter((one) => one.start <= start && end <= one.end);
  const inner = around.sort((one, other) => one.end - one.start - (other.end - other.start))[0];
  if (inner === undefined || UNSEEN.test(inner.name)) return undefined;
  const lineEnd = text.indexOf('\n', end);
  const to = Math.min(inner.end, lineEnd < 0 ? text.length : lineEnd);
  let from = text.lastIndexOf('\n', start) + 1;
  for (; ; from = text.lastIndexOf('\n', from - 2) + 1) {
    const at = Math.max(from, inner.start);
    const search = text.slice(at, to).trim();
    const isUnique = text.slice(inner.start, inner.end).split(search).length === 2;
    if (UNSEEN.test(search)) return undefined;
    if (isUnique) {
      const replace = (text.slice(at, start) + instead + text.slice(end, to)).trim();
      return { in: inner.name, search, replace };
    }
    if (from <= inner.start) return undefined;
  }
}

/** Core files that import a file of the source, those with the fewest lines first. */
function testsOf(path: string): string[] {
  const importing = globSync('{test,packages/*/test}/**/*.test.ts', { cwd: ROOT }).flatMap((test) => {
    const isCore = !/\.(all|all-long|long)\.test\.ts$/.test(test);
    if (!isCore || /^test\/(containers|planted)\//.test(test)) return [];
    const text = readFileSync(join(ROOT, test), 'utf8');
    const imports = [...text.matchAll(/from '((?:\.|soundpost-)[^']+)'/g)].map(([, to = '']) =>
      to.startsWith('.')
        ? relative(ROOT, resolve(ROOT, dirname(test), to))
        : to.replace(/^soundpost-([^/]+)\/(.+)$/, 'packages/$1/src/$2.ts'),
    );
    return imports.includes(path) ? [{ test, lines: text.length }] : [];
  });
  const direct = importing.sort((one, other) => one.lines - other.lines).map(({ test }) => test);
  const [, top = '.'] = path.split('/');
  const name = basename(path, '.ts');
  const ofName = globSync(
    `{test/${top},packages/${top}/test}/**/${name}{,.core-all,.core-all-long}.test.ts`,
    { cwd: ROOT },
  );
  const [, ofFolder = []] = TESTS_OF_FOLDER.find(([folder]) => folder.test(path)) ?? [];
  return [...new Set([...ofName, ...direct.slice(0, MOST_TESTS - 1), ...ofFolder])].slice(0, MOST_TESTS);
}

function draw(candidates: readonly Candidate[]): Fault[] {
  const random = randomOf(SEED);
  const shuffled = candidates
    .map((candidate) => ({ candidate, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ candidate }) => candidate);
  const drawn: Candidate[] = [];
  const kinds = ['negated', 'changed', 'removed'] as const;
  for (let turn = 0; drawn.length < COUNT; turn += 1) {
    const next = shuffled.find(
      (one) =>
        one.kind === kinds[turn % kinds.length] &&
        !(nameOf(one) in EQUIVALENT) &&
        !drawn.some((other) => other.in === one.in && other.path === one.path) &&
        drawn.filter((other) => other.path === one.path).length < 2,
    );
    if (next === undefined) throw new Error(`there are only ${drawn.length} to draw`);
    drawn.push(next);
  }
  return drawn.map((one) => ({
    name: nameOf(one),
    promise: `a mutant of what ${/^(src\/gateway|packages\/chat)/.test(one.path) ? 'the eleven operations run' : 'one MP3 job runs'}`,
    in: one.in,
    search: one.search.replaceAll(/\s+/g, ' '),
    replace: one.replace,
    tests: testsOf(one.path),
  }));
}

const nameOf = ({ path, kind, in: within }: Candidate): string =>
  `mutant-${kind}-${basename(path, '.ts')}-${within.replaceAll(/[.#]+/g, '-')}`.toLowerCase();

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('name the folder of the coverage');
const coverage = readCoverage(folder);
const candidates = [...coverage.keys()]
  .sort()
  .flatMap((path) => candidatesOf(path, coverage.get(path) ?? []));
const drawn = draw(candidates);
writeFileSync(
  join(import.meta.dirname, 'mutants-drawn.ts'),
  `/** ${COUNT} of ${candidates.length} mutants, drawn by mutants.ts, which says how. */
import type { Fault } from './fault.ts';

export const mutants: readonly Fault[] = ${JSON.stringify(drawn, null, 2)};
`,
);
