/** A transcript as the text of a file: WebVTT, SubRip, JSON, or the words alone (pure). */
import type { Subtitles } from 'soundpost-contract/transcripts';
import { type Cue, cuesOf } from './cues.ts';
import type { Segment, Transcript } from './transcript.ts';

/** The file's content, to be written as UTF-8. Without speech it is a valid file without subtitles. */
export function writeSubtitles(transcript: Transcript, subtitles: Subtitles): string {
  return writers[subtitles](transcript);
}

const writers: Readonly<Record<Subtitles, (transcript: Transcript) => string>> = {
  vtt: ({ segments }) => `WEBVTT\n\n${cuesOf(segments).map(vttCue).join('\n')}`,
  srt: ({ segments }) => cuesOf(segments).map(srtCue).join('\n'),
  json: ({ language, durationSeconds, segments }) =>
    `${JSON.stringify({ language, duration: durationSeconds, segments, text: plainText(segments) })}\n`,
  txt: ({ segments }) => (segments.length === 0 ? '' : `${plainText(segments)}\n`),
};

/** WebVTT, W3C, 4.1: a cue's text holds no `-->`, and `&`, `<` and `>` are written as references. */
function vttCue({ start, end, lines }: Cue): string {
  const text = lines
    .map((line) => line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'))
    .join('\n');
  return `${timeOf(start, '.')} --> ${timeOf(end, '.')}\n${text}\n`;
}

/** Its readers take `<b>` for bold and `{\an8}` for a place on the screen, and nothing makes them take it for text. */
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

/** From this on a silence parts two paragraphs. */
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
