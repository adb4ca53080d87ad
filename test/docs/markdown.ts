/** What the pages of the documentation hold, as far as the tests read them. */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const projectFolder = resolve(import.meta.dirname, '../..');

/** All pages, as paths from the project's folder. */
export function pages(): string[] {
  return globSync('**/*.md', {
    cwd: projectFolder,
    exclude: (name) =>
      ['node_modules', '.node', '.git', 'data', 'demo-output', 'coverage', 'dist', 'site'].includes(name),
  }).sort();
}

export function readPage(page: string): string {
  return readFileSync(join(projectFolder, page), 'utf8');
}

export interface CodeBlock {
  readonly language: string;
  readonly text: string;
  /** What the comment on the line before the block says; empty without one. */
  readonly mark: string;
  /** Line of the fence in the page, from 1. */
  readonly line: number;
}

const FENCED =
  /(?:^<!-- (?<mark>.*?) -->\n)?^(?<fence>`{3,})(?<language>\w*)\n(?<text>[\s\S]*?)^\k<fence>$/gm;

export function codeBlocks(page: string): CodeBlock[] {
  return codeBlocksIn(readPage(page));
}

export function codeBlocksIn(markdown: string): CodeBlock[] {
  return [...markdown.matchAll(FENCED)].map(({ groups = {}, index }) => ({
    language: groups.language ?? '',
    text: groups.text ?? '',
    mark: groups.mark ?? '',
    line: markdown.slice(0, index).split('\n').length + (groups.mark === undefined ? 0 : 1),
  }));
}

/** A page without its code, for whatever reads prose. */
export function prose(page: string): string {
  return readPage(page)
    .replaceAll(FENCED, '')
    .replaceAll(/`[^`\n]*`/g, '');
}

/** The keys after `shortened:` in a mark: values under them may be cut off with an ellipsis. */
export function shortenedKeys({ mark }: CodeBlock): string[] {
  return (/shortened: (.*)$/.exec(mark)?.[1] ?? '').split(', ').filter((key) => key !== '');
}

/** Every string in a JSON value that is cut off, with the key that it stands under. */
export function shortenedValues(value: unknown, key = ''): string[] {
  if (typeof value === 'string') {
    return value.includes('…') ? [key] : [];
  }
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  return Object.entries(value).flatMap(([name, inner]) =>
    shortenedValues(inner, Array.isArray(value) ? key : name),
  );
}
