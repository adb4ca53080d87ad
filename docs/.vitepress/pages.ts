/** Which Markdown files are pages of the site, and where they stand in it. Paths are relative to the project's folder. */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const projectFolder = resolve(import.meta.dirname, '../..');

/** What of the project is no page: everything outside of the root, `docs`, `examples` and the page of the client's package. */
export const notPages = [
  '!(docs|examples|packages|*.md)/**',
  'examples/**/node_modules/**',
  'packages/*/!(README.md)/**',
];

/** All pages of the site, sorted. */
export function sitePages(folder = projectFolder): string[] {
  return globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md', 'packages/*/README.md'], {
    cwd: folder,
    exclude: (name) => name === 'node_modules',
  }).sort();
}

/**
 * Where the page stands in the site: `docs` is its root, and a folder's README.md is what the folder's address shows.
 * @param page such as `docs/how-to/uploads.md`
 */
export function placeOf(page: string): string {
  if (page === 'README.md') {
    return 'readme.md';
  }
  return page.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The page's first heading, without its code marks. */
export function titleOf(page: string): string {
  const [, title] = /^# (.+)$/m.exec(readFileSync(join(projectFolder, page), 'utf8')) ?? [];
  if (title === undefined) {
    throw new Error(`${page} has no title: begin it with a line "# …"`);
  }
  return title.replaceAll('`', '');
}
