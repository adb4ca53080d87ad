import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { slug } from '../../docs/.vitepress/slug.ts';
import { pages, projectFolder, prose, readPage } from './markdown.ts';

const LINK = /\]\(([^)\s]+)\)/g;

function anchors(page: string): Set<string> {
  const text = readPage(page);
  return new Set([
    ...[...text.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => slug(heading)),
    ...[...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id),
  ]);
}

/** What is wrong with the page's links to files of this project. */
function brokenLinks(page: string): string[] {
  return [...prose(page).matchAll(LINK)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => !resolves(page, target));
}

function resolves(page: string, target: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? join(projectFolder, page) : join(projectFolder, dirname(page), path);
  if (!existsSync(file)) {
    return false;
  }
  return (
    anchor === undefined || (statSync(file).isFile() && anchors(relative(projectFolder, file)).has(anchor))
  );
}

describe('links between the pages', () => {
  it('are looked at: the documentation begins with links to every page of it', () => {
    const linked = [...prose('docs/README.md').matchAll(LINK)].map(([, target = '']) => `docs/${target}`);
    const others = pages().filter(
      (page) => /^docs\/((how-to|operations)\/)?[^/]+\.md$/.test(page) && page !== 'docs/README.md',
    );
    expect(others.length).toBeGreaterThan(20);
    expect(others.filter((page) => !linked.includes(page))).toEqual([]);
  });

  it.each(pages())('%s has no link that leads nowhere', (page) => {
    expect(brokenLinks(page)).toEqual([]);
  });
});

/** `docs/….md "Section"`, as messages and comments name a section. */
const CITATION = /\b(docs\/[\w/-]+\.md),? \\?"([^"\\]+)\\?"/g;

const CITING = '{src,packages,deploy,script,test,web}/**/*.{ts,js,c,sh,yml,yaml,lua}';

function citations(): { file: string; page: string; section: string }[] {
  const files = globSync([CITING, 'script/*', '*.yml', 'Dockerfile'], {
    cwd: projectFolder,
    exclude: (name) => name === 'node_modules' || name === 'dist',
  }).filter((file) => statSync(join(projectFolder, file)).isFile());
  return files.flatMap((file) =>
    [...readFileSync(join(projectFolder, file), 'utf8').matchAll(CITATION)].map(
      ([, page = '', section = '']) => ({ file, page, section }),
    ),
  );
}

/** Headings, and the bold words that begin a paragraph, a row or an item. */
function sections(page: string): string[] {
  const names = readPage(page).matchAll(/^(?:#{1,6} (.*)|(?:\| |- )?\*\*([^*]+?)\.?\*\*.*)$/gm);
  return [...names].map(([, heading, bold = '']) => heading ?? bold);
}

it('messages, comments and deployment files name pages and sections that exist', () => {
  const cited = citations();
  expect(cited.length).toBeGreaterThan(20);
  const broken = cited.filter(
    ({ page, section }) => !(existsSync(join(projectFolder, page)) && sections(page).includes(section)),
  );
  expect(broken).toEqual([]);
});
