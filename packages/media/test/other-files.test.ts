/** What is no media file is named, with what to do. */
import { expect, it } from 'vitest';
import { LEFT_OUT, nameOther } from '../src/other-files.ts';
import { bytesSource } from '../src/sniff.ts';

const named = (head: string) => nameOther(bytesSource(Buffer.from(head, 'latin1')));

it.each([
  [
    '<!DOCTYPE html><html><body>Sign in</body></html>',
    'a web page',
    'share link must lead straight to the file',
  ],
  ['\xef\xbb\xbf\n<!-- a --><!-- b -->\n<HTML lang="en">', 'a web page', 'URL of the file itself'],
  ['<?xml version="1.0"?><!DOCTYPE html PUBLIC "">', 'a web page', 'URL of the file itself'],
  ['#EXTM3U\n#EXTINF:1,\na.ts\n', 'a playlist', 'URL of the playlist'],
  ['<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011">', 'a manifest', 'URL'],
  ['[playlist]\nFile1=a.mp3\n', 'a playlist', 'a file that it lists'],
  ["ffconcat version 1.0\nfile '/etc/passwd'\n", 'a playlist', 'a file that it lists'],
  ['PERFORMER "x"\nFILE "a.wav" WAVE\n  TRACK 01 AUDIO\n', 'a cue sheet', 'a file that it lists'],
  ['WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n', 'subtitles', 'another file'],
  ['{"error": "not found"}', 'a JSON document', 'URL of the file itself'],
  [
    '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
    'an XML document',
    'URL of the file itself',
  ],
  ['<svg xmlns="http://www.w3.org/2000/svg">', 'a picture', 'another file'],
  ['%PDF-1.7\n', 'a PDF document', 'another file'],
  ['PK\x03\x04\x14\0', 'a ZIP archive', 'unpack'],
  ['\x1f\x8b\x08\0', 'an archive', 'unpack'],
  ['\x89PNG\r\n\x1a\n', 'a picture', 'another file'],
  ['\xff\xd8\xff\xe0\0\x10JFIF', 'a picture', 'another file'],
  ['RIFF\0\0\0\0WEBPVP8 ', 'a picture', 'another file'],
  ['no media at all, only words', 'text', 'URL of the file itself'],
])('%j', async (head, name, remedy) => {
  expect(await named(head)).toMatch(new RegExp(`^the file is ${name}, not a media file: .*${remedy}`));
});

it.each([
  ['MThd\0\0\0\x06', /^not supported: MIDI .*other files.*convert/],
  ['CWS\x0a', /^not supported: Flash movies \(too rare\)/],
  ['\xac\x40\xff\xff', /^not supported: AC-4 \(no free decoder\)/],
  ['', /^the file is empty; /],
  ['\0\x01\x02\x03', /^the file is not in a known container; /],
])('%j is not supported', async (head, sentence) => {
  expect(await named(head)).toMatch(sentence);
});

/** Rows of docs/inputs.md that no bytes tell: what they begin with above, or where the proof stands. */
const TOLD_OTHERWISE: Readonly<Record<string, string>> = {
  'Playlists and edit lists: M3U without segments, PLS, XSPF, cue sheets, ffconcat': '[playlist]',
  'Apple Positional Audio (APAC)': 'a track of MP4: probe.test.ts',
  'GSM, G.722, G.726, SBC and aptX without a container': 'of no known container',
};

it.each(LEFT_OUT)('$name is named, with its reason', async ({ name, reason, begins = [], marks = [] }) => {
  if (begins.length === 0) return expect(Object.keys(TOLD_OTHERWISE)).toContain(name);
  const marked = marks.map(([at, mark]) => `title${'\0'.repeat(at - 5)}${mark}`);
  for (const head of [...begins, ...marked])
    expect(await named(head)).toMatch(`not supported: ${name} (${reason})`);
});

it('no more than twelve kinds of sound stay out', () => {
  expect(LEFT_OUT.length).toBeLessThanOrEqual(12);
});
