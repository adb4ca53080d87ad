/** Formats a transcript as WebVTT, SubRip, JSON or plain text. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Subtitles } from 'soundpost-contract/transcripts';
import type { Segment } from './answer.ts';
import type { Transcript } from './recording.ts';

/** The file's content, for UTF-8. Without speech it is a valid, empty file. */
export async function writeSubtitles(transcript: Transcript, subtitles: Subtitles): Promise<string> {
  return writers[subtitles](transcript);
}

const writers: Readonly<Record<Subtitles, (transcript: Transcript) => string | Promise<string>>> = {
  vtt: async ({ segments }) => `WEBVTT\n\n${await eachCue(segments, vttCue)}`,
  srt: ({ segments }) => eachCue(segments, srtCue),
  json: ({ language, durationSeconds, segments, words }) =>
    `${JSON.stringify({ language, duration: durationSeconds, segments, words, text: plainText(segments) })}\n`,
  txt: ({ segments }) => (segments.length === 0 ? '' : `${plainText(segments)}\n`),
};

/** Segments, which take 50 ms where their texts are the longest. Those of 6 h took 2 s at once. */
const AT_ONCE = 20;

async function eachCue(
  segments: readonly Segment[],
  write: (cue: Cue, index: number) => string,
): Promise<string> {
  const written: string[] = [];
  for (let at = 0; at < segments.length; at += AT_ONCE) {
    for (const cue of cuesOf(segments.slice(at, at + AT_ONCE))) written.push(write(cue, written.length));
    await nextTurn();
  }
  return written.join('\n');
}

/** WebVTT, W3C, 4.1: a cue's text has no `-->`; `&`, `<` and `>` become references. */
function vttCue({ start, end, lines }: Cue): string {
  const text = lines
    .map((line) => line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'))
    .join('\n');
  return `${timeOf(start, '.')} --> ${timeOf(end, '.')}\n${text}\n`;
}

/** SubRip has no escapes: players read `<b>` as bold and `{\an8}` as a position. */
function srtCue({ start, end, lines }: Cue, index: number): string {
  const text = lines
    .map((line) =>
      line
        .replaceAll('-->', '→')
        .replace(/<(?=[a-z/])/gi, '‹')
        .replace(/\{(?=\\)/g, '('),
    )
    .join('\n');
  return `${index + 1}\n${timeOf(start, ',')} --> ${timeOf(end, ',')}\n${text}\n`;
}

/** `01:02:03.004`. */
function timeOf(seconds: number, point: '.' | ','): string {
  const ms = Math.round(seconds * 1000);
  const two = (count: number): string => String(count).padStart(2, '0');
  const [hours, minutes, rest] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, ms % 60_000];
  return `${two(hours)}:${two(minutes)}:${two(Math.floor(rest / 1000))}${point}${String(rest % 1000).padStart(3, '0')}`;
}

/** A longer silence starts a new paragraph. */
const PARAGRAPH_SECONDS = 2;

function plainText(segments: readonly Segment[]): string {
  let text = '';
  let end = 0;
  for (const segment of segments) {
    const gap = segment.start - end >= PARAGRAPH_SECONDS ? '\n\n' : ' ';
    text += text === '' ? segment.text : gap + segment.text;
    end = segment.end;
  }
  return text;
}

/** Characters per line and lines per subtitle (BBC and Netflix guidelines: 37 to 42). */
const LINE_WIDTH = 42;
const CUE_WIDTH = 2 * LINE_WIDTH;
/** Players skip a subtitle without duration. */
const SHORTEST_SECONDS = 0.001;

interface Cue {
  readonly start: number;
  /** After `start`. */
  readonly end: number;
  /** One or two lines. */
  readonly lines: readonly string[];
}

/** Splits a segment's time by the length of the displayed text. */
export function cuesOf(segments: readonly Segment[]): Cue[] {
  return segments.flatMap(({ start, end, text }) => {
    const shown = split(text);
    const widths = shown.map(widthOf);
    const whole = widths.reduce((sum, width) => sum + width, 0);
    const seconds = Math.max(end - start, SHORTEST_SECONDS * shown.length);
    let before = 0;
    return shown.map((part, index) => {
      const from = start + (seconds * before) / whole;
      before += widths[index] ?? 0;
      return { start: from, end: start + (seconds * before) / whole, lines: linesOf(part) };
    });
  });
}

function split(text: string): string[] {
  const shown: string[] = [];
  let rest = text;
  let width = widthOf(text);
  while (width > CUE_WIDTH) {
    const at = breakOf(rest, CUE_WIDTH, width / Math.ceil(width / CUE_WIDTH));
    const taken = rest.slice(0, at);
    shown.push(taken.trim());
    rest = rest.slice(at);
    const behind = rest.trimStart();
    width -= widthOf(taken) + (rest.length - behind.length);
    rest = behind;
  }
  if (rest !== '' || shown.length === 0) shown.push(rest);
  return shown;
}

function linesOf(text: string): string[] {
  const width = widthOf(text);
  if (width <= LINE_WIDTH) return [text];
  const at = breakOf(text, Math.max(LINE_WIDTH, Math.ceil(width / 2) + 8), width / 2);
  return [text.slice(0, at).trim(), text.slice(at).trim()].filter((line) => line !== '');
}

/** East Asian characters are twice as wide (Unicode Standard Annex 11, wide and fullwidth). */
const WIDE = /[\u1100-\u115f\u2e80-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60]/u;

function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += WIDE.test(character) ? 2 : 1;
  return width;
}

const words = new Intl.Segmenter(undefined, { granularity: 'word' });
const characters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** How good a break is: after a sentence, after a clause, between words. */
function rankOf(before: string): number {
  if (/[.!?…。！？]["'”’»)]?\s*$/u.test(before)) return 2;
  return /[,;:–—、，；：]["'”’»)]?\s*$/u.test(before) ? 1 : 0;
}

/**
 * Index at which to break a text: after a sentence or clause in the second half of the limit, else
 * between words nearest to `wanted`; inside a word only if it does not fit.
 * @param most limit of characters
 */
function breakOf(text: string, most: number, wanted: number): number {
  let best: { readonly at: number; readonly rank: number; readonly off: number } | undefined;
  for (const { index: at } of words.segment(text)) {
    const before = text.slice(0, at);
    const width = widthOf(before.trimEnd());
    if (width > most) break;
    if (width === 0 || !isBetweenWords(before, text.slice(at))) continue;
    const rank = width >= most / 2 ? rankOf(before) : 0;
    const off = Math.abs(width - wanted);
    if (best === undefined || rank > best.rank || (rank === best.rank && off < best.off)) {
      best = { at, rank, off };
    }
  }
  return best?.at ?? insideWord(text, most);
}

/** At a space, or in scripts without spaces between words not followed by a mark. */
function isBetweenWords(before: string, after: string): boolean {
  return /\s$/u.test(before) || (WIDE.test([...before].at(-1) ?? '') && /^[\p{L}\p{N}]/u.test(after));
}

function insideWord(text: string, most: number): number {
  let end = 0;
  let width = 0;
  for (const { index, segment } of characters.segment(text)) {
    width += widthOf(segment);
    if (width > most && end > 0) break;
    end = index + segment.length;
  }
  return end;
}
