/** docs/performance.md is made of what was measured, by scripts that are there and run. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Row } from '../../bench/measuring/comparison.ts';
import { readResults, rowScripts } from '../../bench/measuring/results.ts';
import { run } from '../house/command.ts';
import { projectFolder } from './markdown.ts';

it('every script of bench has its place in the page, and every place its script', async () => {
  const files = await readdir(join(projectFolder, 'bench'));
  const scripts = files.filter((name) => name.endsWith('.ts')).map((name) => name.replace('.ts', ''));
  expect(scripts.toSorted()).toEqual(rowScripts.toSorted());
});

it('every row was measured five times at the least, together with what it is compared with; what was not is named', async () => {
  const results = readResults(projectFolder);
  const page = await readFile(join(projectFolder, 'docs/performance.md'), 'utf8');
  const waiting = rowScripts.filter((name) => results.every(({ script }) => script !== name));
  const [, named = ''] = /^Not yet measured .*: (.*)\.$/m.exec(page) ?? [];
  expect(named).toBe(waiting.map((name) => `\`bench/${name}.ts\``).join(', '));
  for (const { ours, theirs } of results.flatMap(({ result }) => result.rows)) {
    expect(ours.length).toBeGreaterThanOrEqual(5);
    expect([0, ours.length]).toContain(theirs.length);
  }
});

it('a script prints rows of the form that the page is made of', async () => {
  const script = join(projectFolder, 'bench/loudness.ts');
  const { code, output } = await run(projectFolder, process.execPath, [
    script,
    '--minutes',
    '0.1',
    '--runs',
    '1',
  ]);
  expect(code, output).toBe(0);
  const rows = output.split('\n').filter((line) => line.startsWith('{'));
  expect(rows.map((line) => Row.parse(JSON.parse(line)).unit)).toEqual(['s']);
});
