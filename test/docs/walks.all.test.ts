/** Follows every page but the walk with curl (curl-walk.all.test.ts) and the disasters (disasters.all.test.ts): its commands run as they stand, in order, and print what the page shows. */

import { until } from 'soundpost-testing/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runs } from './command-blocks.ts';
import { type CodeBlock, codeBlocks, pages } from './markdown.ts';
import { expectSame } from './shape.ts';
import { START, Stand } from './stand.ts';

const LONGEST_REPEAT_MS = 30_000;

/** Pages with a test of their own. */
const ELSEWHERE = ['docs/walk.md', 'docs/how-to/disasters.md', 'docs/how-to/backup.md'];
const walked = pages().filter((page) => !ELSEWHERE.includes(page) && codeBlocks(page).some(runs));

/** A line with what differs from run to run blanked. */
function masked(line: string): string {
  return line
    .replaceAll(/\b(job|upl|batch)_[0-9a-f]{16}/g, '$1_…')
    .replaceAll(/\d+(\.\d+)?/g, 'N')
    .trimEnd();
}

/** The lines of a transcript: what is typed, with what it prints. */
function transcript(text: string): { typed: string; printed: string }[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [typed = '', ...printed] = part.split('\n');
      return { typed, printed: printed.join('\n') };
    });
}

describe('the pages', () => {
  let stand: Stand;
  beforeAll(async () => {
    stand = await Stand.open();
  });
  afterAll(() => stand[Symbol.asyncDispose]());

  /** What the last block printed, and what runs beside by now. */
  let printed = '';
  let beside: AsyncIterator<string> | undefined;

  it.each(walked)(
    '%s: its commands run, and print what it shows',
    async (page) => {
      await stand.enter(page);
      printed = '';
      beside = undefined;
      let previous: CodeBlock | undefined;
      for (const block of codeBlocks(page)) {
        if (runs(block)) {
          await follow(block).catch((error: Error) => {
            throw new Error(`${page}:${block.line}: ${error.message}`, { cause: error });
          });
        } else if (previous !== undefined && runs(previous) && block.mark.startsWith('answer: ')) {
          expectSame(page, block, JSON.parse(printed), JSON.parse(block.text));
        } else if (block.mark === 'prints beside') {
          printed = '';
          await expectPrinted(page, block);
        } else if (block.mark === 'prints') {
          await expectPrinted(page, block);
        }
        previous = block;
      }
    },
    120_000,
  );

  async function follow(block: CodeBlock): Promise<void> {
    const { mark, text } = block;
    const { walk } = stand;
    if (mark === 'runs as the service') {
      expect(text).toBe(START);
    } else if (mark === 'runs as shown') {
      for (const one of transcript(text)) {
        expect(await walk.typed(one.typed)).toBe(one.printed);
      }
    } else if (mark === 'runs beside') {
      beside = walk.beside(text)[Symbol.asyncIterator]();
      printed = String((await beside.next()).value);
    } else if (mark.startsWith('runs until ')) {
      const wanted = new RegExp(`"status":"(?:${mark.slice('runs until '.length)})"`);
      await until(mark, async () => wanted.test(await runOnce(text)), LONGEST_REPEAT_MS);
    } else {
      await runOnce(text);
    }
  }

  async function runOnce(text: string): Promise<string> {
    printed = await stand.walk.run(text);
    takeOver(printed);
    return printed;
  }

  /** What the reader copies out of an answer into a variable. */
  function takeOver(answer: string): void {
    for (const [name, pattern] of [
      ['JOB', /\bjob_[0-9a-f]{16}/],
      ['UPLOAD', /\bupl_[0-9a-f]{16}/],
      ['SECRET', /\bwhsec_[^"\s]+/],
    ] as const) {
      const [value] = pattern.exec(answer) ?? [];
      if (value !== undefined) {
        stand.walk.variables[name] = value;
      }
    }
  }

  /** The lines are those of the block before, or come next from what runs beside. */
  async function expectPrinted(page: string, block: CodeBlock): Promise<void> {
    const shown = block.text.trimEnd().split('\n');
    const lines = printed === '' ? [] : printed.trimEnd().split('\n');
    while (beside !== undefined && lines.length < shown.length) {
      lines.push(String((await beside.next()).value));
    }
    expect(lines.slice(-shown.length).map(masked), `${page}:${block.line}`).toEqual(shown.map(masked));
  }
});
