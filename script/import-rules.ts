/**
 * Holds `src` and `packages` against .dependency-cruiser.mjs, and each package to its fence: prints each breach and ends with 1, or prints how much it has read.
 * Takes the project's folder as argument; default: the current one.
 *
 * The files are read twice, because each of dependency-cruiser's parsers that work beside TypeScript 7 misses
 * something: swc `process.getBuiltinModule`, acorn whether an import is of types only. So swc judges the imports that
 * it sees, acorn the others.
 */
import { globSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, resolve } from 'node:path';
import type { Statement, VariableDeclarator } from '@swc/core';
import { Visitor } from '@swc/core/Visitor.js';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import extractDepcruiseConfig from 'dependency-cruiser/config-utl/extract-depcruise-config';

// The walk that dependency-cruiser takes through swc's tree gives up on a `using` declaration, which is newer.
const visitKnownStatement = Visitor.prototype.visitStatement;
Visitor.prototype.visitStatement = function visitStatement(
  statement: Statement | UsingDeclaration,
): Statement {
  if (statement.type !== 'UsingDeclaration') return visitKnownStatement.call(this, statement);
  this.visitVariableDeclarators(statement.decls);
  return statement as unknown as Statement;
};
interface UsingDeclaration {
  readonly type: 'UsingDeclaration';
  readonly decls: VariableDeclarator[];
}

const folder = resolve(process.argv[2] ?? '.');
process.chdir(folder);
const { options, ...ruleSet } = await extractDepcruiseConfig(resolve('.dependency-cruiser.mjs'));

const files = globSync(['src/**/*.ts', 'packages/*/src/**/*.ts']).map((file) => file.replaceAll('\\', '/'));
const breaches = new Set<string>();
/** What the package.json of a package names, by its folder. */
const declared = new Map<string, Set<string>>();
const imports = new Set<string>();

for (const parser of ['swc', 'acorn'] as const) {
  const { output } = await cruise(['src', 'packages'], { ...options, parser, validate: true, ruleSet });
  const { modules, summary } = output as ICruiseResult;
  for (const { rule, from, to } of summary.violations) {
    if (!imports.has(`${from} → ${to}`)) breaches.add(`${rule.name}: ${from} → ${to}`);
  }
  for (const { source, dependencies } of modules) {
    for (const { module, resolved } of dependencies) {
      imports.add(`${source} → ${resolved}`);
      const breach = fenceBreach(source, module, resolved);
      if (breach !== undefined) breaches.add(`${breach}: ${source} → ${resolved}`);
    }
  }
  // A parser that is not installed, or of a version that the checker does not know, makes it see nothing and succeed.
  const read = new Set(modules.map(({ source }) => source));
  for (const file of files) {
    if (!read.has(file)) breaches.add(`unread: ${file} was not read by ${parser}`);
  }
}

/** Behind a package's name its `exports` are the door; a relative import would climb over the fence, and npm's hoisting lets in what is not declared. */
function fenceBreach(source: string, specifier: string, resolved: string): string | undefined {
  const home = packageOf(source);
  if (specifier.startsWith('.')) return packageOf(resolved) === home ? undefined : 'fence';
  const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '';
  return isBuiltin(specifier) || declaredIn(home).has(name) ? undefined : 'undeclared';
}

function packageOf(path: string): string {
  return /^packages\/[^/]+(?=\/)/.exec(path)?.[0] ?? '.';
}

function declaredIn(home: string): Set<string> {
  const known = declared.get(home);
  if (known !== undefined) return known;
  const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  const names = new Set(
    ['dependencies', 'devDependencies', 'peerDependencies'].flatMap((kind) =>
      Object.keys(manifest[kind] ?? {}),
    ),
  );
  declared.set(home, names);
  return names;
}

if (imports.size === 0) breaches.add(`unread: no import found in the ${files.length} files of ${folder}/src`);
for (const breach of [...breaches].sort()) process.stdout.write(`${breach}\n`);
process.stdout.write(`${files.length} modules, ${imports.size} imports, ${breaches.size} breaches\n`);
process.exitCode = breaches.size === 0 ? 0 : 1;
