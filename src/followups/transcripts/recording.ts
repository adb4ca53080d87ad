/**
 * A recording transcribed in parts. Its state is kept after each part, so that a failing
 * transcriber does not get a part twice.
 */

import { cutBefore, type Levels, pausesIn, type Stretch } from 'soundpost-media/notes/pauses';
import { bytesOf, PCM_RATE, readLevels, WINDOW_SAMPLES, windowsWithin } from 'soundpost-media/notes/pcm-file';
import { z } from 'zod';
import type { PartHeard, Segment } from './answer.ts';

/** OpenAI's limit, without the form around the file. */
export const LARGEST_PART_BYTES = 25_000_000;

const Spoken = z.array(z.object({ start: z.number(), end: z.number(), text: z.string() }));
const Heard = z.object({
  language: z.string().nullable(),
  segments: Spoken,
  words: Spoken.optional(),
});

/** As stored: the text of the first parts, in order. */
export const Recording = z.object({
  version: z.literal(1),
  /** Where its samples start in the WAV file, bytes. */
  dataAt: z.int().min(0),
  samples: z.int().min(0),
  parts: z.array(z.object({ from: z.int().min(0), to: z.int().min(0) })),
  heard: z.array(Heard),
  /** Of audio that the key's minutes are not charged with yet. Absent: none. */
  owedSeconds: z.number().min(0).optional(),
});
export type Recording = z.infer<typeof Recording>;

/** What was heard of a recording while it was decoded, in order. */
export interface HeardBefore {
  readonly parts: readonly Stretch[];
  readonly heard: readonly PartHeard[];
  /** That the key was charged with. */
  readonly spentSeconds: number;
}

const NOTHING: HeardBefore = { parts: [], heard: [], spentSeconds: 0 };

/**
 * @param wav bytes of a WAV file: 16 kHz, mono, 16 bits; not kept
 * @param mostBytes of a part; default OpenAI's limit
 * @param heardBefore called once the file is read; default nothing was heard
 */
export async function openRecording(
  wav: AsyncIterable<Buffer>,
  mostBytes = LARGEST_PART_BYTES,
  heardBefore: () => Promise<HeardBefore> = async () => NOTHING,
): Promise<Recording> {
  const { dataAt, samples, levels } = await readLevels(wav);
  const { parts, heard, spentSeconds } = await heardBefore();
  const opened: Recording = {
    ...{ version: 1, dataAt, samples, heard: [] },
    parts: partsOf(levels, windowsWithin(mostBytes), parts),
    owedSeconds: Math.max(0, samples / PCM_RATE - spentSeconds),
  };
  return heard.reduce(withHeard, opened);
}

interface RecordingPart {
  readonly stretch: Stretch;
  /** Its offset in the WAV file, bytes. */
  readonly at: number;
  readonly bytes: number;
  readonly seconds: number;
}

/** The first untranscribed part; undefined if there is none. */
export function nextPart({ parts, heard, dataAt, samples }: Recording): RecordingPart | undefined {
  const stretch = parts[heard.length];
  if (stretch === undefined) return undefined;
  const { at, bytes } = bytesOf({ dataAt, samples }, stretch);
  return { stretch, at, bytes, seconds: bytes / 2 / PCM_RATE };
}

export function withHeard(recording: Recording, { language, segments, words }: PartHeard): Recording {
  const heard = { language, segments: [...segments], ...(words && { words: [...words] }) };
  return { ...recording, heard: [...recording.heard, heard] };
}

/** On the source's clock. */
export interface Transcript {
  /** BCP 47; null if unknown. */
  readonly language: string | null;
  /** Of the audio, including silence. */
  readonly durationSeconds: number;
  /** Ordered by start. */
  readonly segments: readonly Segment[];
  /** Absent unless the transcriber gave words for all parts. */
  readonly words?: readonly Segment[];
}

/**
 * The transcript of all parts.
 * @param startOffsetSeconds start of the recording on the source's clock
 * @param language as requested, if any
 */
export function transcriptOf(
  { parts, heard, samples }: Recording,
  startOffsetSeconds: number,
  language: string | undefined,
): Transcript {
  const together = (spoken: (part: PartHeard) => readonly Segment[]): Segment[] =>
    heard.flatMap((part, index) => {
      const shift = startOffsetSeconds + ((parts[index]?.from ?? 0) * WINDOW_SAMPLES) / PCM_RATE;
      return spoken(part).map(({ start, end, text }) => ({
        start: rounded(start + shift),
        end: rounded(end + shift),
        text,
      }));
    });
  const hasWords = heard.length > 0 && heard.every(({ words }) => words !== undefined);
  return {
    language: language ?? mostHeard(heard),
    durationSeconds: rounded(samples / PCM_RATE),
    segments: together((part) => part.segments),
    ...(hasWords && { words: together(({ words = [] }) => words) }),
  };
}

/**
 * Consecutive parts without gap or overlap, so that no word is lost or repeated: cut in the longest
 * pause in the last third of the limit, or else in the quietest 20 ms.
 * @param levels of the whole recording, a window for each 20 ms
 * @param most windows of a part, 1 or more
 * @param before the first parts, where they are cut already
 */
export function partsOf(levels: Levels, most: number, before: readonly Stretch[] = []): Stretch[] {
  const parts = [...before];
  let from = before.at(-1)?.to ?? 0;
  if (levels.length - from > most) {
    const pauses = pausesIn(levels);
    while (levels.length - from > most) {
      // At least one window, or the loop would not end.
      const to = Math.max(from + 1, cutBefore(levels, pauses, from, from + most));
      parts.push({ from, to });
      from = to;
    }
  }
  if (from < levels.length) parts.push({ from, to: levels.length });
  return parts;
}

/** To a millisecond, as in subtitles. */
const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;

/** The language of the longest text. */
function mostHeard(parts: readonly PartHeard[]): string | null {
  const said = new Map<string, number>();
  for (const { language, segments } of parts) {
    const length = segments.reduce((sum, { text }) => sum + text.length, 0);
    if (language !== null) said.set(language, (said.get(language) ?? 0) + length);
  }
  const [most] = [...said].sort(([, one], [, other]) => other - one);
  return most?.[0] ?? null;
}
