import { describe, expect, it } from 'vitest';
import { commandFaults, isCommand } from './command-blocks.ts';
import { codeBlocks, pages, readPage } from './markdown.ts';

const page = (mark: string, text = 'frobnicate --all', language = 'sh') =>
  `# A page\n\n${mark}\n\`\`\`${language}\n${text}\n\`\`\`\n`;

describe('commands in the pages', () => {
  it('are found', () => {
    expect(pages().flatMap(codeBlocks).filter(isCommand).length).toBeGreaterThan(20);
  });

  it.each(pages())('of %s are run by a test, or say why not', (name) => {
    expect(commandFaults(name, readPage(name))).toEqual([]);
  });
});

describe('the rule about commands', () => {
  it.each([
    ['a block without a mark', page(''), 'page.md:4: nothing says who runs the block'],
    ['a mark that is none', page('<!-- run it -->'), 'page.md:4: nothing says who runs the block'],
    ['no reason', page('<!-- does not run: -->'), 'page.md:4: "" is no reason'],
    ['a thin reason', page('<!-- does not run: later -->'), 'page.md:4: "later" is no reason'],
    [
      'a reason about a command that is not there any more',
      page('<!-- does not run: needs a cluster for `kubectl` -->'),
      'page.md:4: the mark is stale: `kubectl` is neither',
    ],
    [
      'a reason that names a test that is gone',
      page('<!-- does not run: `test/gone.test.ts` runs the same command -->'),
      'page.md:4: the mark is stale: `test/gone.test.ts` is neither',
    ],
    [
      'a mark whose block is gone',
      '<!-- runs -->\n\nA sentence.\n',
      'page.md:1: the mark "runs" stands before no block',
    ],
    [
      'a mark before a block of something else',
      page('<!-- runs -->', '{}', 'json'),
      'page.md:3: the mark "runs" stands before no block',
    ],
    [
      'a mark with a line between it and its block',
      page('<!-- runs -->\n'),
      'page.md:5: nothing says who runs the block',
    ],
    ['a block without a language', page('', 'a picture', ''), 'page.md:4: the block names no language'],
    ['commands shown as text', page('', 'curl -s x', 'text'), 'page.md:4: commands stand in a block of text'],
    ['an indented block', '- like this:\n\n  ```sh\n  ls\n  ```\n', 'page.md:3: a block is indented'],
    [
      'a transcript that is run without a look at what it shows',
      page('<!-- runs -->', '$ ls', 'console'),
      'page.md:4: "runs as shown" and console belong together',
    ],
  ])('refuses %s', (_what, markdown, fault) => {
    expect(commandFaults('page.md', markdown).join('\n')).toContain(fault);
  });

  it.each([
    ['a block that runs', page('<!-- runs -->')],
    ['a transcript', page('<!-- runs as shown -->', '$ ls\nfile', 'console')],
    ['a reason', page('<!-- does not run: needs a cluster of yours -->')],
    [
      'a reason with a test',
      page('<!-- does not run: `test/docs/walk.ts` runs it with other ports, `frobnicate` alone -->'),
    ],
    ['text that is no command', page('', 'API  http://127.0.0.1', 'text')],
  ])('takes %s', (_what, markdown) => {
    expect(commandFaults('page.md', markdown)).toEqual([]);
  });
});
