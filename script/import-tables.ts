/** Who may import whom, read out of the rules that script/import-rules.ts holds the code to. */
import { join } from 'node:path';
import extractDepcruiseConfig from 'dependency-cruiser/config-utl/extract-depcruise-config';
import { code, markdownTable } from './markdown-table.ts';

const { forbidden = [] } = await extractDepcruiseConfig(
  join(import.meta.dirname, '../.dependency-cruiser.mjs'),
);

export function importTable(): string {
  const rows = rulesMatching(
    /^src\/(\S+) may import, of ours: its own folder, (.*?)(?:, )?and the type Logger$/,
  );
  return markdownTable(
    ['Folder', 'May import of ours, besides its own folder and the type `Logger`'],
    rows.map(([folder = '', others = '']) => [
      code(`src/${folder}`),
      others === '' ? 'nothing' : paths(others),
    ]),
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
