/** Each format read by a parser made for this test, after the page that defines it. */
import { turnsDuring } from 'soundpost-testing/turns-during';
import { expect, test } from 'vitest';
import type { Transcript } from '../../../src/followups/transcripts/recording.ts';
import { writeSubtitles } from '../../../src/followups/transcripts/subtitles.ts';

const talk: Transcript = {
  language: 'en',
  durationSeconds: 3725.5,
  segments: [
    { start: 0.5, end: 2.25, text: 'Good evening & welcome <to> all --> of you.' },
    { start: 2.25, end: 3, text: '<i>Really</i>' },
    { start: 3661.001, end: 3662.9996, text: 'That is 1 < 2.' },
  ],
};
const silence: Transcript = { language: null, durationSeconds: 12, segments: [] };

/** W3C WebVTT, section 6.1, as far as these files go: header, blocks, timings, references of a cue's text. */
function readVtt(file: string): { start: number; end: number; text: string }[] {
  const [header, ...blocks] = file.split(/\n\n/);
  expect(header).toBe('WEBVTT');
  return blocks
    .map((block) => block.replace(/\n$/, ''))
    .filter((block) => block !== '')
    .map((block) => {
      const [timing = '', ...lines] = block.split('\n');
      const found = /^(\d{2,}):(\d\d):(\d\d\.\d{3}) --> (\d{2,}):(\d\d):(\d\d\.\d{3})$/.exec(timing);
      if (found === null) throw new Error(`no timing: ${timing}`);
      const [h1, m1, s1, h2, m2, s2] = found.slice(1).map(Number);
      const text = lines.join(' ');
      expect(text).not.toMatch(/-->|<|&(?!(amp|lt|gt);)/);
      return {
        start: Number(h1) * 3600 + Number(m1) * 60 + Number(s1),
        end: Number(h2) * 3600 + Number(m2) * 60 + Number(s2),
        text: text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
      };
    });
}

test('WebVTT: times, and text whatever it holds', async () => {
  const cues = readVtt(await writeSubtitles(talk, 'vtt'));
  expect(cues.map(({ text }) => text)).toEqual(talk.segments.map(({ text }) => text));
  expect(cues.map(({ start }) => start)).toEqual([0.5, 2.25, 3661.001]);
  expect(cues.at(-1)?.end).toBe(3663);
});

test('SubRip: numbers, times with a comma, nothing that readers take for marks', async () => {
  const blocks = (await writeSubtitles(talk, 'srt')).trimEnd().split('\n\n');
  expect(blocks).toEqual([
    '1\n00:00:00,500 --> 00:00:02,250\nGood evening & welcome\n‹to> all → of you.',
    '2\n00:00:02,250 --> 00:00:03,000\n‹i>Really‹/i>',
    '3\n01:01:01,001 --> 01:01:03,000\nThat is 1 < 2.',
  ]);
});

test('JSON: language, duration, segments, and all of the text', async () => {
  expect(JSON.parse(await writeSubtitles(talk, 'json'))).toEqual({
    language: 'en',
    duration: 3725.5,
    segments: talk.segments,
    text: 'Good evening & welcome <to> all --> of you. <i>Really</i>\n\nThat is 1 < 2.',
  });
});

test('the words alone: a paragraph for each stretch of speech', async () => {
  expect(await writeSubtitles(talk, 'txt')).toBe(
    'Good evening & welcome <to> all --> of you. <i>Really</i>\n\nThat is 1 < 2.\n',
  );
});

test.for([
  ['vtt', 'WEBVTT\n\n'],
  ['srt', ''],
  ['txt', ''],
  ['json', '{"language":null,"duration":12,"segments":[],"text":""}\n'],
] as const)('without speech, %s is a valid file without subtitles', async ([format, file]) => {
  expect(await writeSubtitles(silence, format)).toBe(file);
});

test.for(['vtt', 'srt'] as const)('%s of hours lets others run', async (format) => {
  const segments = Array.from({ length: 1_000 }, (_, nth) => ({ start: nth, end: nth + 1, text: 'Good.' }));
  expect(await turnsDuring(() => writeSubtitles({ ...talk, segments }, format))).toBeGreaterThanOrEqual(50);
});
