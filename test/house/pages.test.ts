/** What is in web/: TypeScript, style sheets, HTML and a picture; JavaScript is made, or fetched, and in no commit. */
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { projectFolder } from './planted-tree.ts';

it('no JavaScript is written by hand', () => {
  const files = execFileSync('git', ['ls-files', 'web'], { cwd: projectFolder, encoding: 'utf8' });
  const kinds = new Set(
    files
      .trim()
      .split('\n')
      .map((file) => file.replace(/^.*?\.(?=\w+$)/, '')),
  );
  expect([...kinds].toSorted()).toEqual(['css', 'html', 'json', 'svg', 'ts', 'tsx']);
});
