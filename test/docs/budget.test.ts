/** How much there is to read, in words as `wc -w` counts them. */
import { describe, expect, it } from 'vitest';
import { isDesign } from '../../docs/.vitepress/search.ts';
import { withoutGenerated } from '../../script/words/texts.ts';
import { pages, readPage } from './markdown.ts';

/** Generated tables are looked things up in, not read. */
const words = (page: string): number => (withoutGenerated(readPage(page)).match(/\S+/g) ?? []).length;

/** Without what the code makes. */
const MOST_WORDS = 25_000;

const userDocs = pages().filter(
  (page) => page.startsWith('docs/') && !page.startsWith('docs/reference/') && !isDesign(page),
);

describe('there is not too much to read', () => {
  it.each(['README.md', 'CHANGELOG.md'])('%s has 600 words at most', (page) => {
    expect(words(page)).toBeLessThanOrEqual(600);
  });

  it(`the documentation for users has ${MOST_WORDS} words at most`, () => {
    const counted = userDocs.map((page) => ({ page, words: words(page) }));
    expect(counted.length).toBeGreaterThan(20);
    const longest = counted.toSorted((one, other) => other.words - one.words).slice(0, 5);
    const sum = counted.reduce((total, one) => total + one.words, 0);
    expect(
      sum,
      `the longest: ${longest.map((one) => `${one.page} ${one.words}`).join(', ')}`,
    ).toBeLessThanOrEqual(MOST_WORDS);
  });
});
