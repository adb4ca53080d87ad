/** Cut and put together again: every window in exactly one part, times on the source's clock. */
import { expect, test } from 'vitest';
import { partsOf, type Recording, transcriptOf } from '../../../src/followups/transcripts/recording.ts';

const SILENCE: Recording = { version: 1, dataAt: 44, samples: 0, parts: [], heard: [] };

/** 20 ms each: speech at −20 dB, with pauses of 300 ms at −60 dB. */
function speech(windows: number, pauseEvery: number): Float32Array {
  return Float32Array.from({ length: windows }, (_, at) => (at % pauseEvery < 15 ? -60 : -20));
}

test('what fits is one part', () => {
  expect(partsOf(speech(500, 100), 500)).toEqual([{ from: 0, to: 500 }]);
  expect(partsOf(new Float32Array(0), 500)).toEqual([]);
});

test('longer ones abut, none is longer than allowed, and each cut is in a pause', () => {
  const levels = speech(10_000, 130);
  const parts = partsOf(levels, 1500);
  expect(parts[0]?.from).toBe(0);
  expect(parts.at(-1)?.to).toBe(levels.length);
  for (const [index, { from, to }] of parts.entries()) {
    expect(to - from).toBeGreaterThan(0);
    expect(to - from).toBeLessThanOrEqual(1500);
    if (index > 0) {
      expect(from).toBe(parts[index - 1]?.to);
      expect(levels[from]).toBe(-60);
    }
  }
});

test('sound without a pause is cut in its quietest moment, and the smallest part is one window', () => {
  const levels = Float32Array.from({ length: 3000 }, (_, at) => (at === 1234 ? -25 : -20));
  expect(partsOf(levels, 1500)[0]).toEqual({ from: 0, to: 1234 });
  expect(partsOf(levels, 1)).toHaveLength(3000);
});

test('times count on the clock of the source: the cut, and where the part begins', () => {
  const parts = [
    { from: 0, to: 1501 },
    { from: 1501, to: 2250 },
  ];
  const heard = [
    { language: 'en', segments: [{ start: 0.1, end: 2, text: 'One.' }] },
    { language: 'en', segments: [{ start: 0, end: 1.5, text: 'Two.' }] },
  ];
  const transcript = transcriptOf({ ...SILENCE, samples: 45 * 16_000, parts, heard }, 60, undefined);
  expect(transcript).toEqual({
    language: 'en',
    durationSeconds: 45,
    segments: [
      { start: 60.1, end: 62, text: 'One.' },
      { start: 90.02, end: 91.52, text: 'Two.' },
    ],
  });
});

test('the language is the one that was asked for, else the one in which most was said', () => {
  const part = (language: string | null, text: string) => ({
    language,
    segments: text === '' ? [] : [{ start: 0, end: 1, text }],
  });
  const heard = [part('fr', 'oui'), part('en', 'a long sentence'), part(null, 'x'), part('en', '')];
  expect(transcriptOf({ ...SILENCE, heard }, 0, undefined).language).toBe('en');
  expect(transcriptOf({ ...SILENCE, heard }, 0, 'de').language).toBe('de');
  expect(transcriptOf({ ...SILENCE, heard: [part(null, '')] }, 0, undefined).language).toBeNull();
});

test('words are on the clock of the source too, and left out unless every part has them', () => {
  const parts = [
    { from: 0, to: 500 },
    { from: 500, to: 800 },
  ];
  const first = { language: 'en', segments: [], words: [{ start: 0.1, end: 0.4, text: 'One' }] };
  const second = { language: 'en', segments: [], words: [{ start: 0, end: 0.5, text: 'two' }] };
  const spoken = (heard: Recording['heard']) =>
    transcriptOf({ ...SILENCE, parts, heard }, 60, undefined).words;
  expect(spoken([first, second])).toEqual([
    { start: 60.1, end: 60.4, text: 'One' },
    { start: 70, end: 70.5, text: 'two' },
  ]);
  expect(spoken([first, { language: 'en', segments: [] }])).toBeUndefined();
  expect(spoken([])).toBeUndefined();
});
