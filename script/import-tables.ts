/** Who may import whom, read out of what the packages declare and of the rules that script/import-rules.ts holds the code to. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import extractDepcruiseConfig from 'dependency-cruiser/config-utl/extract-depcruise-config';
import { code, markdownTable } from './markdown-table.ts';

const PACKAGES = join(import.meta.dirname, '../packages');

const { forbidden = [] } = await extractDepcruiseConfig(
  join(import.meta.dirname, '../.dependency-cruiser.mjs'),
);

/** Each package: what it says that it is, its doors, and what of ours it may use, which npm and the rule of imports hold it to. */
export function importTable(): string {
  const names = readdirSync(PACKAGES).filter((name) => name !== 'testing');
  return markdownTable(
    ['Package', 'What it is', 'Doors', 'May use of ours'],
    names.map((name) => {
      const {
        description,
        dependencies = {},
        devDependencies = {},
        exports,
        private: isPrivate,
      } = JSON.parse(readFileSync(join(PACKAGES, name, 'package.json'), 'utf8'));
      // What is published brings its own with it, so that it depends on nothing of ours.
      const used = Object.keys(isPrivate === true ? dependencies : { ...dependencies, ...devDependencies });
      const ours = used.filter((other) => other.startsWith('soundpost-') && other !== 'soundpost-testing');
      return [
        code(`packages/${name}`),
        description,
        String(Object.keys(exports).length),
        ours.length === 0 ? 'nothing' : ours.map((other) => code(other.replace('soundpost-', ''))).join(', '),
      ];
    }),
  );
}

export function ownerTable(): string {
  const rows = rulesMatching(/^(\S+) may be imported only in (.*)$/);
  return markdownTable(
    ['What', 'Imported only in'],
    rows.map(([name = '', owners = '']) => [code(name), paths(owners)]),
  );
}

function rulesMatching(pattern: RegExp): string[][] {
  const rows = forbidden.flatMap(({ comment = '' }) => {
    const match = pattern.exec(comment);
    return match === null ? [] : [match.slice(1)];
  });
  if (rows.length === 0) {
    throw new Error(`no rule of .dependency-cruiser.mjs has a comment of the form ${pattern}`);
  }
  return rows;
}

/** The rules hold regular expressions: `queue/(redis|script)\.ts$` names two files. */
function paths(list: string): string {
  return list
    .split(', ')
    .map((path) => path.replaceAll(/[\\$]/g, ''))
    .flatMap((path) => {
      const [, before = '', choices, after = ''] = /^(.*)\(([^)]*)\)(.*)$/.exec(path) ?? [];
      return choices === undefined ? [path] : choices.split('|').map((choice) => before + choice + after);
    })
    .map((path) => code(path.replace(/\/$/, '')))
    .join(', ');
}
