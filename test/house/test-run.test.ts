import { chmod, cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

const spec = (body: string): string =>
  `import { expect, it } from 'vitest';\n\nit('does', () => {\n  ${body};\n});\n`;

describe('script/test', () => {
  it.each([
    ['tests that pass', { 'test/a.test.ts': spec(''), 'test/end-to-end/b.test.ts': spec('') }, 2, 0],
    ['a test that fails', { 'test/a.test.ts': spec(''), 'test/b.test.ts': spec('expect(1).toBe(2)') }, 1, 1],
    [
      'a file that cannot be loaded',
      { 'test/a.test.ts': spec(''), 'test/b.test.ts': 'throw new Error();' },
      1,
      1,
    ],
    [
      'an error outside of any test',
      { 'test/a.test.ts': `queueMicrotask(() => {\n  throw new Error();\n});\n${spec('')}` },
      1,
      1,
    ],
    [
      'a long version that was not asked for',
      { 'test/a.test.ts': spec('expect(process.env.TEST_ALL).toBe(undefined)') },
      1,
      0,
    ],
  ])('ends with the count of %s', async (_, files, passed, failed) => {
    await using tree = await plantTree({ 'script/bootstrap': '#!/bin/sh\n', ...files });
    const { code, output } = await run(tree.folder, 'script/test');
    expect(output).toMatch(new RegExp(`^${passed} passed, ${failed} failed$`, 'm'));
    expect(code).toBe(failed === 0 ? 0 : 1);
  });

  it('runs the long versions with --all, and hands the rest to vitest', async () => {
    await using tree = await plantTree({
      'script/bootstrap': '#!/bin/sh\n[ "$1" = --test ]\n',
      'test/a.test.ts': spec("expect(process.env.TEST_ALL).toBe('1')"),
      'test/b.test.ts': spec('expect(1).toBe(2)'),
    });
    const { code, output } = await run(tree.folder, 'script/test', ['--all', 'test/a.test.ts']);
    expect(output).toMatch(/\n1 passed, 0 failed\n$/);
    expect(code).toBe(0);
  });

  it('runs nothing when bootstrap failed', async () => {
    await using tree = await plantTree({
      'script/bootstrap': '#!/bin/sh\nexit 1\n',
      'test/a.test.ts': spec(''),
    });
    const { code, output } = await run(tree.folder, 'script/test');
    expect(output).toBe('');
    expect(code).toBe(1);
  });
});

describe('.ci/run', () => {
  it.each([
    ['nothing fails', 0, 0, 0, []],
    ['the check fails', 1, 0, 1, ['failed: ./script/check']],
    ['a test fails', 0, 1, 1, ['failed: ./script/test']],
    ['both fail', 1, 1, 1, ['failed: ./script/check ./script/test']],
  ])('runs both commands when %s', async (_, check, test, expected, verdict) => {
    await using tree = await plantTree({
      'script/check': `#!/bin/sh\necho check; exit ${check}\n`,
      'script/test': `#!/bin/sh\necho test; exit ${test}\n`,
    });
    await mkdir(join(tree.folder, '.ci'));
    await cp(join(projectFolder, '.ci/run'), join(tree.folder, '.ci/run'));
    await chmod(join(tree.folder, '.ci/run'), 0o755);
    const { code, output } = await run('/', join(tree.folder, '.ci/run'));
    expect(output.trim().replaceAll(/\d+ s/g, 'N s').split('\n')).toEqual([
      'check',
      './script/check took N s',
      'test',
      './script/test took N s',
      ...verdict,
    ]);
    expect(code).toBe(expected);
  });
});
