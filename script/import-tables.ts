/** Who may import whom, read out of what the packages declare and of the rules that script/import-rules.ts holds the code to. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { code, markdownTable } from './markdown-table.ts';
import { owners } from './owners.ts';

const PACKAGES = join(import.meta.dirname, '../packages');

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
        exports = {},
      } = JSON.parse(readFileSync(join(PACKAGES, name, 'package.json'), 'utf8'));
      const ours = Object.keys({ ...dependencies, ...devDependencies }).filter(
        (other) => other.startsWith('soundpost-') && other !== 'soundpost-testing',
      );
      const doors = Object.keys(exports).filter((door) => door !== './package.json');
      return [
        code(`packages/${name}`),
        description,
        String(doors.length),
        ours.length === 0 ? 'nothing' : ours.map((other) => code(other.replace('soundpost-', ''))).join(', '),
      ];
    }),
  );
}

export function ownerTable(): string {
  return markdownTable(
    ['What', 'Imported only in'],
    Object.entries(owners).map(([name, places]) => [code(name), places.flatMap(paths).map(code).join(', ')]),
  );
}

/** The places are regular expressions: `src/(tool-process|starter)\\.ts` names two files. */
function paths(pattern: string): string[] {
  const place = pattern.replaceAll('\\', '').replace(/\/$/, '');
  const [, before = '', choices, after = ''] = /^(.*)\(([^)]*)\)(.*)$/.exec(place) ?? [];
  return choices === undefined
    ? [place]
    : choices.split('|').map((choice) => (before + choice + after).replace(/\/$/, ''));
}
