/** The README and the decisions are short. Their links to the project are checked with those of all pages. */
import { expect, it } from 'vitest';
import { codeBlocks, pages, prose, readPage } from './markdown.ts';

const MOST_WORDS = 600;
const MOST_WORDS_OF_A_DECISION = 250;

it('has at most 600 words outside of code', () => {
  const words = prose('README.md')
    .replaceAll(/<!--.*?-->/g, '')
    .replaceAll(/\]\([^)]*\)/g, '')
    .split(/\s+/)
    .filter((word) => /\w/.test(word));
  expect(words.length).toBeGreaterThan(300);
  expect(words.length).toBeLessThanOrEqual(MOST_WORDS);
});

it('shows the two commands, those for one file, one request and a picture', () => {
  const commands = codeBlocks('README.md').map(({ text }) => text.trim().split(/[ \n]/)[0]);
  expect(commands).toEqual(['./script/demo', './script/test', 'docker', 'curl']);
  expect(readPage('README.md')).toMatch(/^!\[[^\]]+\]\(docs\/images\/[\w-]+\.png\)$/m);
});

it('shows a request that the tutorial makes', () => {
  const request = codeBlocks('README.md').at(-1)?.text;
  expect(codeBlocks('docs/tutorial.md').find(({ text }) => text === request)?.mark).toBe('runs');
});

it('links to nothing outside of the project', () => {
  const links = [...prose('README.md').matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  expect(links.length).toBeGreaterThan(10);
  expect(links.filter((target) => /^[a-z]+:/.test(target))).toEqual([]);
});

it('a decision page has at most 250 words', () => {
  const decisions = pages().filter((page) => page.startsWith('docs/decisions/'));
  expect(decisions.length).toBeGreaterThan(30);
  const lengths = decisions.map((page) => ({ page, words: readPage(page).trim().split(/\s+/).length }));
  expect(lengths.filter(({ words }) => words > MOST_WORDS_OF_A_DECISION)).toEqual([]);
});
