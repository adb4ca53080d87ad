/**
 * Blocks of commands in the pages: which there are, and what their marks say. Every one of them is run by a test, or says
 * why not, in a comment on the line before it:
 *
 *     <!-- runs -->                      to its end, with success
 *     <!-- runs as shown -->             what follows "$ " runs, whatever becomes of it, and prints the rest
 *     <!-- runs beside -->               stays while the rest of the page runs
 *     <!-- runs as the service -->       starts Soundpost
 *     <!-- runs until completed -->      again and again, until the answer's `status` is that, or one of several: a|b (docs/walk.md: or `told`)
 *     <!-- does not run: needs … -->     a reason; what stands in backticks there is in the block, or a path of the project
 *
 * The README has no such comments: its reasons stand in NOT_RUN below.
 *
 * curl-walk.all.test.ts runs those of docs/walk.md, disasters.all.test.ts those of docs/how-to/disasters.md and backup.md, walks.all.test.ts those of all other
 * pages, by these marks alone.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type CodeBlock, codeBlocksIn, projectFolder } from './markdown.ts';

const SHELLS = ['sh', 'bash', 'shell', 'zsh', 'console'];

const RUNS = /^runs( as shown| beside| as the service| until [\w|]+)?$/;
const DOES_NOT_RUN = /^does not run: ?(?<reason>.*)$/;
const ANY_MARK = /^<!-- (?<mark>(?:runs\b|does not run\b|not run\b).*?) -->$/gm;

/** The least that can name what is missing, or who runs it instead. */
const LEAST_REASON = { words: 4, characters: 20 };

/** How a line begins that only a shell understands, wherever it is shown. */
const COMMAND =
  /^(?:\$ |(?:[A-Z_]+=\S+ )?(?:sudo |exec )?(?:\.?\/?script\/\w|(?:curl|docker|kubectl|npm|npx|node|python3?|git|apt-get|brew|redis-cli|ffmpeg|export|soundpost|cd|ssh|openssl) ))/m;

export function isCommand({ language }: CodeBlock): boolean {
  return SHELLS.includes(language);
}

export function runs(block: CodeBlock): boolean {
  return isCommand(block) && RUNS.test(block.mark);
}

/** Blocks that do not run, of the page that people read as it is written: why, by how they begin. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': {
    './script/demo': 'does not run: the demo has end-to-end tests of its own',
    './script/test': 'does not run: the test that reads this page is one of them',
    'docker compose up -d':
      'does not run: needs a container engine; `test/containers/one-file.test.ts` runs these two commands',
    'curl -s "$API/v1/extract"':
      'does not run: `docs/tutorial.md` holds the same request, and its test runs it',
  },
};

function withReason(page: string, block: CodeBlock): CodeBlock {
  const begun = Object.entries(NOT_RUN[page] ?? {}).find(([beginning]) => block.text.startsWith(beginning));
  return begun === undefined || block.mark !== '' ? block : { ...block, mark: begun[1] };
}

/** What is wrong with the page's blocks and marks, a line each. */
export function commandFaults(page: string, markdown: string): string[] {
  const blocks = codeBlocksIn(markdown).map((block) => withReason(page, block));
  return [
    ...blocks.flatMap((block) => blockFaults(block).map((fault) => `${page}:${block.line}: ${fault}`)),
    ...lostMarks(markdown, blocks).map((fault) => `${page}:${fault}`),
    ...[...markdown.matchAll(/^[ \t>]+`{3,}/gm)].map(
      ({ index }) => `${page}:${lineAt(markdown, index)}: a block is indented: no test sees it`,
    ),
  ];
}

function blockFaults(block: CodeBlock): string[] {
  if (block.language === '') {
    return ['the block names no language: sh for commands, text for what is none'];
  }
  if (!isCommand(block)) {
    return block.language === 'text' && COMMAND.test(block.text)
      ? ['commands stand in a block of text: make it sh, or console where it shows what they print']
      : [];
  }
  if (RUNS.test(block.mark)) {
    return (block.language === 'console') === (block.mark === 'runs as shown')
      ? []
      : ['"runs as shown" and console belong together'];
  }
  const { reason } = DOES_NOT_RUN.exec(block.mark)?.groups ?? {};
  return reason === undefined
    ? ['nothing says who runs the block: mark it <!-- runs --> or <!-- does not run: why -->']
    : reasonFaults(reason, block);
}

function reasonFaults(reason: string, { text }: CodeBlock): string[] {
  const named = [...reason.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  const stale = named.filter((name) => !text.includes(name) && !existsSync(join(projectFolder, name)));
  const isThin =
    reason.trim().split(/\s+/).length < LEAST_REASON.words || reason.length < LEAST_REASON.characters;
  return [
    ...(isThin ? [`"${reason}" is no reason: say what is missing, or which test runs it instead`] : []),
    ...stale.map((name) => `the mark is stale: \`${name}\` is neither in the block nor in the project`),
  ];
}

/** Marks that stand before no block of commands (any more). */
function lostMarks(markdown: string, blocks: readonly CodeBlock[]): string[] {
  return [...markdown.matchAll(ANY_MARK)]
    .map(({ groups, index }) => ({ mark: groups?.mark ?? '', line: lineAt(markdown, index) }))
    .filter(({ mark, line }) => !blocks.some((block) => isCommand(block) && isMarked(block, mark, line)))
    .map(({ mark, line }) => `${line}: the mark "${mark}" stands before no block of commands`);
}

function isMarked(block: CodeBlock, mark: string, line: number): boolean {
  return block.mark === mark && block.line === line + 1;
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}
