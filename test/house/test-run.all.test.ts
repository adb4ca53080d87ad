import { chmod, cp, mkdir } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from './command.ts';
import { plantTree, projectFolder } from './planted-tree.ts';

/** Whoever runs these tests may have it set. */
const withoutSkip = { ...process.env, SKIP_CONTAINERS: undefined };

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
  ])('ends with the count of %s', async (_, files, passed, failed) => {
    await using tree = await plantTree({ 'script/bootstrap': '#!/bin/sh\n', ...files });
    const { code, output } = await run(tree.folder, 'script/test');
    expect(output).toMatch(new RegExp(`^core took \\d+ s\n${passed} passed, ${failed} failed$`, 'm'));
    expect(code).toBe(failed === 0 ? 0 : 1);
  });

  const ofRun = (run: string): string =>
    `import { expect, inject, it } from 'vitest';\n\nit('does', () => {\n  expect(inject('run')).toBe('${run}');\n});\n`;

  it.each([
    ['the core', [], ['core'], 2],
    ['the core and then the others with --all', ['--all'], ['core', 'all'], 4],
    ['the long ones with --long', ['--long'], ['long'], 2],
    ['of core and all what the arguments choose', ['test/several'], ['core', 'all'], 2],
    ['of the long ones what the arguments choose', ['--long', 'test/several'], ['long'], 1],
  ])('runs %s', async (_, args, runs, passed) => {
    const several = `import { expect, inject, it } from 'vitest';\n\nit('does', () => {\n  expect(inject('run')).toMatch(/./);\n});\n`;
    await using tree = await plantTree({
      'script/bootstrap': '#!/bin/sh\n[ "$1" = --test ]\n',
      'test/a.test.ts': ofRun('core'),
      'test/a.all.test.ts': ofRun('all'),
      'test/a.long.test.ts': ofRun('long'),
      'test/several.core-all-long.test.ts': several,
      'test/containers/a.test.ts': spec('expect(1).toBe(2)'),
    });
    const { code, output } = await run(tree.folder, 'script/test', args);
    const times = runs.map((name) => `${name} took \\d+ s\n`).join('');
    expect(output).toMatch(new RegExp(`\n${times}${passed} passed, 0 failed\n$`));
    expect(code).toBe(0);
  });

  it('says at the end what was skipped, and why', async () => {
    await using tree = await plantTree({
      'script/bootstrap': '#!/bin/sh\n',
      'test/a.test.ts': `import { it } from 'vitest';\n\nit('flies', ({ skip }) => skip('there are no wings'));\nit.skip('swims');\n`,
    });
    const { output } = await run(tree.folder, 'script/test');
    expect(output).toMatch(/\nskipped: flies: there are no wings\ncore took \d+ s\n0 passed, 0 failed\n$/);
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

describe('script/test-containers', () => {
  /** A machine on which no engine answers, and nobody is root. */
  async function outcome(environment: Readonly<Record<string, string>>) {
    await using tree = await plantTree({
      'script/bootstrap': '#!/bin/sh\n',
      'bin/docker': '#!/bin/sh\nexit 1\n',
      'bin/id': '#!/bin/sh\necho 1000\n',
    });
    await cp(join(projectFolder, 'script/test-containers'), join(tree.folder, 'script/test-containers'));
    const PATH = [join(tree.folder, 'bin'), dirname(process.execPath), process.env.PATH].join(delimiter);
    return await run('/', join(tree.folder, 'script/test-containers'), [], {
      ...withoutSkip,
      ...environment,
      PATH,
    });
  }

  it('fails with one sentence and the command where no engine can be had', async () => {
    expect(await outcome({})).toEqual({
      code: 69,
      output:
        'test-containers: no container engine answers, and only root on Debian can start one for the tests; ' +
        'install and start one (Debian: `apt-get install -y docker.io docker-compose && service docker start`), ' +
        'or leave these tests out with SKIP_CONTAINERS=1.\n',
    });
  });

  it('tests nothing with SKIP_CONTAINERS=1, and says so', async () => {
    expect(await outcome({ SKIP_CONTAINERS: '1' })).toEqual({
      code: 0,
      output: 'containers: NOT TESTED, since SKIP_CONTAINERS=1 is set\n',
    });
  });
});

describe('.ci/run', () => {
  const noEngine = 'no container engine comes up on this machine, for the reason above: SKIP_CONTAINERS=1';

  it.each([
    ['nothing fails', 0, 0, 0, 0, ['containers', 'took'], []],
    ['the check fails', 1, 0, 0, 1, ['containers', 'took'], ['failed: ./script/check']],
    ['a test fails', 0, 1, 0, 1, ['containers', 'took'], ['failed: ./script/test']],
    ['the containers fail', 0, 0, 1, 1, ['containers', 'took'], ['failed: ./script/test-containers']],
    ['no engine comes up', 0, 0, 69, 0, ['containers', noEngine, 'skipped', 'took'], []],
    [
      'all fail',
      1,
      1,
      1,
      1,
      ['containers', 'took'],
      ['failed: ./script/check ./script/test ./script/test-containers'],
    ],
  ])('runs all commands when %s', async (_, check, test, containers, expected, lines, verdict) => {
    await using tree = await plantTree({
      'script/check': `#!/bin/sh\necho check; exit ${check}\n`,
      'script/test': `#!/bin/sh\necho test "$@"; exit ${test}\n`,
      'script/test-containers': `#!/bin/sh\n[ -z "$SKIP_CONTAINERS" ] || { echo skipped; exit 0; }\necho containers; exit ${containers}\n`,
    });
    await mkdir(join(tree.folder, '.ci'));
    await cp(join(projectFolder, '.ci/run'), join(tree.folder, '.ci/run'));
    await chmod(join(tree.folder, '.ci/run'), 0o755);
    const { code, output } = await run('/', join(tree.folder, '.ci/run'), [], withoutSkip);
    expect(output.trim().replaceAll(/\d+ s/g, 'N s').split('\n')).toEqual([
      'check',
      './script/check took N s',
      'test --all',
      './script/test took N s',
      ...lines.map((line) => (line === 'took' ? './script/test-containers took N s' : line)),
      ...verdict,
    ]);
    expect(code).toBe(expected);
  });
});
