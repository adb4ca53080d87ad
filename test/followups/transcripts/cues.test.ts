/** What is too long for a screen is shown as several subtitles, without a word lost. */
import { expect, test } from 'vitest';
import { cuesOf } from '../../../src/followups/transcripts/subtitles.ts';

const LONG =
  'We came back to the harbour late in the evening, when the lamps had been lit along the quay. Nobody was waiting for us there, and the boats lay still; so we carried the boxes up by ourselves and went to bed.';

const shownText = (text: string): string =>
  cuesOf([{ start: 0, end: 10, text }])
    .flatMap(({ lines }) => lines)
    .join(' ');

test('a short text is one line at its own time', () => {
  expect(cuesOf([{ start: 1.5, end: 3, text: 'Good evening.' }])).toEqual([
    { start: 1.5, end: 3, lines: ['Good evening.'] },
  ]);
});

test('a longer one has two lines of about the same length', () => {
  const [cue, ...others] = cuesOf([
    { start: 0, end: 4, text: 'The boats lay still along the quay, and nobody was waiting.' },
  ]);
  expect(others).toEqual([]);
  expect(cue?.lines).toEqual(['The boats lay still along the quay,', 'and nobody was waiting.']);
});

test('a long one is shown as several, each of two lines at most, broken after a sentence where it can be', () => {
  const cues = cuesOf([{ start: 10, end: 22, text: LONG }]);
  expect(cues.length).toBeGreaterThan(2);
  for (const { lines } of cues) {
    expect(lines.length).toBeLessThanOrEqual(2);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(50);
  }
  expect(cues.some(({ lines }) => lines.at(-1)?.endsWith('the quay.'))).toBe(true);
  expect(shownText(LONG)).toBe(LONG);
});

test('the time is shared out by what is shown: no gap, no overlap, the same beginning and end', () => {
  const cues = cuesOf([{ start: 10, end: 22, text: LONG }]);
  expect(cues[0]?.start).toBe(10);
  expect(cues.at(-1)?.end).toBeCloseTo(22, 9);
  for (const [index, { start, end }] of cues.entries()) {
    expect(end).toBeGreaterThan(start);
    if (index > 0) expect(start).toBeCloseTo(cues[index - 1]?.end ?? -1, 9);
  }
});

test('a text that takes no time is shown all the same', () => {
  const [cue] = cuesOf([{ start: 3, end: 3, text: 'Yes' }]);
  expect(cue?.end).toBeGreaterThan(3);
});

test('writing without spaces is broken between its words, one word without end inside', () => {
  const japanese = '今日は天気がいいので、みんなで海まで歩いて行きました。'.repeat(6);
  expect(shownText(japanese).replaceAll(' ', '')).toBe(japanese);
  const noise = 'a'.repeat(500);
  const cues = cuesOf([{ start: 0, end: 5, text: noise }]);
  expect(cues.flatMap(({ lines }) => lines).join('')).toBe(noise);
  for (const { lines } of cues) expect(lines.join('').length).toBeLessThanOrEqual(84);
});

test('a hundred random texts keep every word', () => {
  let seed = 7;
  const next = (most: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % most;
  };
  for (let round = 0; round < 100; round += 1) {
    const words = Array.from({ length: 1 + next(80) }, () => 'wxyz'.charAt(next(4)).repeat(1 + next(30)));
    const text = words.join(' ');
    expect(shownText(text)).toBe(text);
  }
});
