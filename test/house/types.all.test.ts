import { beforeAll, describe, expect, it } from 'vitest';
import { type Outcome, run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

const errors: readonly (readonly [what: string, file: string, text: string])[] = [
  ['a value of another type', 'src/a.ts', "export const sizeBytes: number = '12';\n"],
  ['a parameter without a type', 'src/b.ts', 'export const size = (file) => file.size;\n'],
  [
    'a value that may be undefined',
    'src/c.ts',
    'export const first = (list: string[]): string => list[0];\n',
  ],
  ['what Node cannot strip', 'src/d.ts', 'export enum Format {\n  Mp3,\n}\n'],
  ['a type imported as a value', 'src/e.ts', "import { T } from './lawful.ts';\nexport const t: T = 1;\n"],
  ['a local that nothing uses', 'src/f.ts', 'export function f(): void {\n  const unused = 1;\n}\n'],
  [
    'an import without its ending',
    'src/g.ts',
    "import type { T } from './lawful';\nexport const t: T = 1;\n",
  ],
  ['an error in a test', 'test/h.test.ts', "export const count: number = 'three';\n"],
  ['an error in a tool', 'script/i.ts', "export const count: number = 'three';\n"],
];

describe('the compiler', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    await using tree = await plantTree({
      'src/lawful.ts': 'export type T = number;\n',
      ...Object.fromEntries(errors.map(([, file, text]) => [file, text])),
    });
    outcome = await run(tree.folder, `${projectFolder}/node_modules/.bin/tsc`, [
      '-p',
      '.',
      '--pretty',
      'false',
    ]);
  });

  it('fails', () => {
    expect(outcome.code).not.toBe(0);
  });

  it.each(errors)('reports %s (%s)', (_, file) => {
    expect(outcome.output).toMatch(new RegExp(`^${file}\\(\\d+,\\d+\\): error TS`, 'm'));
  });

  it('has nothing to say about the rest', () => {
    const files = [...outcome.output.matchAll(/^(\S+)\(\d+,\d+\): error/gm)].map(([, file]) => file);
    expect([...new Set(files)].sort()).toEqual(errors.map(([, file]) => file).sort());
  });
});
