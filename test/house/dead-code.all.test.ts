import { beforeAll, describe, expect, it } from 'vitest';
import { type Outcome, run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

describe('the search for dead code', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    await using tree = await plantTree({
      'src/main.ts': "import { used } from './parts.ts';\nimport 'zod';\n\nused();\n",
      'src/parts.ts': `export function used(): void {}
export function unusedFunction(): void {}
export type UnusedType = number;
`,
      'src/orphan.ts': 'export const alone = 1;\n',
      'test/parts.test.ts': 'export const unusedInTest = 1;\n',
      'test/fixture.ts': 'export const orphanOfTests = 1;\n',
    });
    outcome = await run(tree.folder, `${projectFolder}/node_modules/.bin/knip`, [
      '--no-progress',
      '--reporter=compact',
    ]);
  });

  it('fails', () => {
    expect(outcome.code).toBe(1);
  });

  it.each([
    ['a file', 'src/orphan.ts'],
    ['a file of the tests', 'test/fixture.ts'],
    ['a function', 'unusedFunction'],
    ['a type', 'UnusedType'],
    ['a package', 'undici'],
  ])('reports %s that nothing uses', (_, name) => {
    expect(outcome.output).toContain(name);
  });

  it.each(['src/main.ts', 'test/parts.test.ts', 'zod', 'vitest', 'dependency-cruiser', '@swc/core'])(
    'sees that %s is used',
    (name) => {
      expect(outcome.output).not.toMatch(new RegExp(`(^|[\\s,])${name}([\\s,:]|$)`, 'm'));
    },
  );
});
