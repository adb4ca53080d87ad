import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectFolder, readPage } from './markdown.ts';

/** Without the tables that are made from the rules: those name homes of parts that are still to come. */
const written = readPage('docs/architecture.md').replaceAll(
  /<!-- generated: [\s\S]*?<!-- end of generated: /g,
  '',
);

/** What stands in backticks and is a path of this project, without a trailing slash. */
const named = new Set(
  [...written.matchAll(/`((?:src|packages|web|script|test|docs|deploy)(?:\/[\w./-]*)?)`/g)].map(
    ([, path = '']) => path.replace(/\/$/, ''),
  ),
);

describe('docs/architecture.md', () => {
  it('names no path that does not exist', () => {
    expect(named.size).toBeGreaterThan(20);
    expect([...named].filter((path) => !existsSync(join(projectFolder, path)))).toEqual([]);
  });

  it('names every package', () => {
    const packages = globSync('packages/*', { cwd: projectFolder });
    expect(packages.filter((path) => !named.has(path))).toEqual([]);
  });

  it('names every folder under src, and every file that lies directly in it', () => {
    const files = globSync('src/**/*.ts', { cwd: projectFolder });
    const folders = files
      .map((file) => file.slice(0, file.lastIndexOf('/')))
      .filter((folder) => folder !== 'src');
    const direct = files.filter((file) => file.split('/').length === 2);
    expect([...new Set([...folders, ...direct])].filter((path) => !named.has(path))).toEqual([]);
  });
});
