/** `script/test`: what a run prints last, and what `--again` makes of it. */
import { expect, it } from 'vitest';
import { run } from './command.ts';
import { plantTree } from './planted-tree.ts';

const spec = (body: string): string =>
  `import { existsSync, writeFileSync } from 'node:fs';\nimport { expect, it } from 'vitest';\n\nit('does', (context) => {\n  ${body};\n});\n`;
/** Fails the first time alone. */
const FLAKY = "const was = existsSync('was-here'); writeFileSync('was-here', ''); expect(was).toBe(true)";
const tree = (files: Readonly<Record<string, string>>) =>
  plantTree({ 'script/bootstrap': '#!/bin/sh\n', ...files });

it.each([
  ['tests that pass', { 'test/a.test.ts': spec('expect(1).toBe(1)') }, 1, 0],
  ['a test that fails', { 'test/a.test.ts': spec('expect(1).toBe(2)') }, 0, 1],
  ['a file that cannot be loaded', { 'test/a.test.ts': 'throw new Error();' }, 0, 1],
  [
    'an error outside of any test',
    { 'test/a.test.ts': `queueMicrotask(() => { throw new Error(); });\n${spec('')}` },
    1,
    1,
  ],
])('ends with the count of %s', async (_what, files, passed, failed) => {
  await using planted = await tree(files);
  const { code, output } = await run(planted.folder, 'script/test');
  expect(output).toMatch(
    new RegExp(
      `\ncore took \\d+ s\n\\d+ s in all, \\d+ s of processor time\n${passed} passed, ${failed} failed$`,
      'm',
    ),
  );
  expect(code).toBe(failed === 0 ? 0 : 1);
});

it('says what was left out, and why', async () => {
  await using planted = await tree({ 'test/a.test.ts': spec("context.skip('it needs a moon')") });
  const { output } = await run(planted.folder, 'script/test');
  expect(output).toContain('\nleft out: 1 test: it needs a moon\n');
});

it('runs what failed once more, and names what passes then', async () => {
  await using planted = await tree({
    'test/a.test.ts': spec(FLAKY),
    'test/b.test.ts': spec('expect(1).toBe(1)'),
  });
  expect((await run(planted.folder, 'script/test')).code).toBe(1);
  const again = await run(planted.folder, 'script/test', ['--again']);
  expect(again.output).toMatch(/\nflaky: test\/a\.test\.ts does\n2 passed, 0 failed$/m);
  expect(again.code).toBe(0);
});

it('fails again where a failed test fails alone as well', async () => {
  await using planted = await tree({ 'test/a.test.ts': spec('expect(1).toBe(2)') });
  await run(planted.folder, 'script/test');
  const again = await run(planted.folder, 'script/test', ['--again']);
  expect(again.output).toMatch(/\n0 passed, 1 failed$/m);
  expect(again.code).toBe(1);
});
