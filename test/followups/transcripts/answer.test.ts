/** What transcribers answer is read with distrust: nonsense is refused, times stay within the part. */
import { expect, test } from 'vitest';
import { NonsenseAnswer, readAnswer } from '../../../src/followups/transcripts/answer.ts';

const body = (answer: unknown): string => JSON.stringify(answer);
const segment = (start: number, end: number, text = 'words') => ({ id: 0, start, end, text, tokens: [1, 2] });

test('segments, cleaned, in the order in which they begin', () => {
  const heard = readAnswer(
    body({
      task: 'transcribe',
      language: 'english',
      duration: 9.5,
      text: ' Two. One.',
      segments: [segment(4, 9, ' Two\n\u0007words. '), segment(0, 4, 'One.'), segment(9, 9.5, '  ')],
    }),
    10,
  );
  expect(heard).toEqual({
    language: 'en',
    segments: [
      { start: 0, end: 4, text: 'One.' },
      { start: 4, end: 9, text: 'Two words.' },
    ],
  });
});

test('times beyond the part are moved to its end, also those of the last 30 s that Whisper hears', () => {
  const { segments } = readAnswer(
    body({ segments: [segment(-0.2, 5), segment(9, 29.98), segment(31, 33)] }),
    10,
  );
  expect(segments.map(({ start, end }) => [start, end])).toEqual([
    [0, 5],
    [9, 10],
    [10, 10],
  ]);
});

test.for([
  ['english', 'en'],
  ['German', 'de'],
  ['en', 'en'],
  ['eng', 'en'],
  ['haitian creole', 'ht'],
  ['cantonese', 'yue'],
  ['myanmar', 'my'],
  ['hebrew', 'he'],
  ['norwegian', 'no'],
  ['klingon, perhaps', null],
  [undefined, null],
] as const)('a language named %s is %s', ([named, code]) => {
  expect(readAnswer(body({ language: named, segments: [] }), 10).language).toBe(code);
});

test('no speech is no error, with segments or without', () => {
  expect(readAnswer(body({ text: '', segments: [] }), 10).segments).toEqual([]);
  expect(readAnswer(body({ text: ' ' }), 10).segments).toEqual([]);
  expect(readAnswer(body({ text: '', error: null }), 10).segments).toEqual([]);
});

test.for([
  ['no JSON', '<html>502</html>'],
  ['nothing', ''],
  ['a list', '[]'],
  ['null', 'null'],
  ['neither text nor segments', '{}'],
  ['an error instead of words', body({ error: { message: 'out of memory' } })],
  ['a language and a length alone', body({ language: 'en', duration: 10 })],
  ['a text that is none', body({ text: null })],
  ['a text that is a list, beside segments', body({ text: ['words'], segments: [segment(0, 1)] })],
  ['words without times', body({ text: 'words' })],
  ['words beside an empty list of segments', body({ text: 'words', segments: [] })],
  ['words beside segments without any', body({ text: 'words', segments: [segment(0, 1, ' ')] })],
  ['an error beside no words', body({ text: '', segments: [], error: 'busy' })],
  ['segments without times', body({ text: 'words', segments: [{ text: 'words' }] })],
  ['segments without text', body({ segments: [{ start: 0, end: 1 }] })],
  ['segments that are no list', body({ segments: {} })],
  ['a time that is a text', body({ segments: [{ start: '0', end: '1', text: 'a' }] })],
  ['a time that is none', '{"segments":[{"start":1e999,"end":2,"text":"a"}]}'],
  ['an end before its beginning', body({ segments: [segment(3, 2)] })],
  ['words long after the end', body({ segments: [segment(100, 101)] })],
  ['words long before the beginning', body({ segments: [segment(-60, 3)] })],
  ['a text without end', body({ segments: [segment(0, 1, 'a'.repeat(2_001))] })],
  [
    'more than anybody says',
    body({ segments: Array.from({ length: 101 }, () => segment(0, 1, 'a'.repeat(2_000))) }),
  ],
  ['too many segments', body({ segments: Array.from({ length: 20_001 }, () => segment(0, 1, 'a')) })],
])('%s is refused', ([, answer]) => {
  expect(() => readAnswer(answer ?? '', 10)).toThrow(NonsenseAnswer);
});
