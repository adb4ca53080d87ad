/** The texts that script/words.ts checks: pages, and the comments and strings that people read in the code. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sitePages } from '../../docs/.vitepress/pages.ts';
import { codeText } from './code-text.ts';

export interface Text {
  /** From the project's folder. */
  readonly file: string;
  readonly markdown: string;
  /** The line of the file that the line of `markdown` comes from; both count from 1. */
  readonly lineOf: (line: number) => number;
  readonly isPage: boolean;
}

/** Where comments are held to the rules too: what people read first. */
const COMMENTED = ['src/api/**', 'packages/media/src/**', 'packages/client/src/**', 'examples/**'];

/** Where strings are texts for users: errors, descriptions of fields, help, labels, and the words of generated tables. */
const SPOKEN = [
  'src/**',
  'packages/!(testing)/src/**',
  'web/**',
  'script/{docs-tables,ffmpeg-vex,performance-page,transport-table}.ts',
];

/** @param root the project's folder */
export function textsOf(root: string): Text[] {
  return [...pagesOf(root), ...codeOf(root)];
}

/** All pages but the decisions, which keep what was thought when they were made. */
function pagesOf(root: string): Text[] {
  return sitePages(root)
    .filter((file) => !file.startsWith('docs/decisions/'))
    .map((file) => ({
      file,
      markdown: withoutGenerated(readFileSync(join(root, file), 'utf8')),
      lineOf: (line) => line,
      isPage: true,
    }));
}

/** Empty lines in place of what script/docs.ts makes: its words are checked where they stand in the code. */
export function withoutGenerated(markdown: string): string {
  return markdown.replaceAll(/^<!-- generated: (.*) -->$[\s\S]*?^<!-- end of generated: \1 -->$/gm, (block) =>
    block.replaceAll(/[^\n]+/g, ''),
  );
}

function codeOf(root: string): Text[] {
  const commented = new Set(filesOf(root, COMMENTED));
  const spoken = new Set(filesOf(root, SPOKEN));
  return [...new Set([...commented, ...spoken])].sort().flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8');
    const { markdown, lines } = codeText(file, source, {
      comments: commented.has(file),
      strings: spoken.has(file),
    });
    return markdown === ''
      ? []
      : [{ file, markdown, lineOf: (line: number) => lines[line - 1] ?? line, isPage: false }];
  });
}

function filesOf(root: string, folders: readonly string[]): string[] {
  return globSync(
    folders.map((folder) => (folder.endsWith('.ts') ? folder : `${folder}/*.{ts,tsx,mjs,js}`)),
    {
      cwd: root,
      exclude: (name) => name === 'node_modules' || name === 'dist' || name.endsWith('scalar.js'),
    },
  );
}
