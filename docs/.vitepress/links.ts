/**
 * Links of the pages as the site has them. The pages link to each other, and to files of the project, as a Git host follows
 * them; the site has pages elsewhere, and of other files a copy as text.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';
import { placeOf, projectFolder } from './pages.ts';

/** Below it the site has the files that pages link to. */
const COPIES = 'files';

type Token = Parameters<NonNullable<MarkdownRenderer['renderer']['rules']['link_open']>>[0][number];

/** Files that a link of a built page leads to, by their place in the site. */
export class LinkedFiles {
  readonly copies = new Map<string, string>();

  /**
   * @param page the page that the link stands on
   * @param target a link without its anchor
   * @returns the place in the site, from its root; undefined where there is no such file, which VitePress then reports
   */
  resolve(page: string, target: string): string | undefined {
    const path = posix.join(dirname(page), decodeURI(target));
    const file = join(projectFolder, path);
    if (path.startsWith('..') || !existsSync(file)) {
      return undefined;
    }
    if (statSync(file).isDirectory()) {
      return this.resolve(page, posix.join(target, 'README.md'));
    }
    if (path.endsWith('.md')) {
      return `/${placeOf(path)}`;
    }
    // As text, so that a browser shows it whatever the server takes its ending for.
    const copy = `${COPIES}/${path.replace(/^\./, 'dot.')}.txt`;
    this.copies.set(copy, file);
    return `/${copy}`;
  }
}

/** Rewrites the links of pages. Anchors stay as they were written: those of a table's rows have capitals. */
export function withLinks(files: LinkedFiles): (md: MarkdownRenderer) => void {
  return (md) => {
    const render = md.renderer.rules.link_open;
    if (render === undefined) {
      throw new Error('VitePress renders links in another way than docs/.vitepress/links.ts knows');
    }
    md.renderer.rules.link_open = (tokens, index, options, env, self) => {
      const token = tokens[index];
      const href = token?.attrGet('href') ?? '';
      const [target = '', anchor] = href.split('#');
      if (token === undefined || /^[a-z]+:/.test(target)) {
        return render(tokens, index, options, env, self);
      }
      if (target !== '') {
        const place = files.resolve(posix.relative(projectFolder, env.realPath ?? env.path), target);
        token.attrSet('href', place ?? `${target.replace(/\/$/, '')}.md`);
        if (place?.startsWith(`/${COPIES}/`)) {
          token.attrSet('target', '_self');
        }
        // Counts the link among those that have to lead to a page, and gives it the site's ending.
        render(tokens, index, options, env, self);
      }
      withAnchor(token, target === '' ? '' : (token.attrGet('href') ?? ''), anchor);
      return self.renderToken(tokens, index, options);
    };
  };
}

function withAnchor(token: Token, href: string, anchor: string | undefined): void {
  if (anchor !== undefined) {
    token.attrSet('href', `${href}#${anchor}`);
  }
}
