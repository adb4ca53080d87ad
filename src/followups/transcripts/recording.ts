/**
 * A recording that is transcribed part by part: what is known of it is kept after each part, so that a transcriber which fails in the middle is not asked twice
 * for what it has heard.
 */

import type { Stretch } from 'soundpost-media/notes/pauses';
import { bytesOf, PCM_RATE, readLevels, WINDOW_SAMPLES, windowsWithin } from 'soundpost-media/notes/pcm-file';
import { z } from 'zod';
import type { PartHeard } from './answer.ts';
import { partsOf } from './cut.ts';
import { joinParts } from './join.ts';
import type { Transcript } from './transcript.ts';

/** What OpenAI's server takes; the form around it is no part of it. */
const LARGEST_PART_BYTES = 25_000_000;

const Heard = z.object({
  language: z.string().nullable(),
  segments: z.array(z.object({ start: z.number(), end: z.number(), text: z.string() })),
});

/** As it is kept: what was heard of the first parts, in order. */
export const Recording = z.object({
  version: z.literal(1),
  /** Where its samples begin in the WAV file, bytes. */
  dataAt: z.int().min(0),
  samples: z.int().min(0),
  parts: z.array(z.object({ from: z.int().min(0), to: z.int().min(0) })),
  heard: z.array(Heard),
});
export type Recording = z.infer<typeof Recording>;

/**
 * @param wav the bytes of a WAV file: 16 kHz, mono, 16 bits. None of them are kept.
 * @param mostBytes of a part; default what OpenAI's server takes
 */
export async function openRecording(
  wav: AsyncIterable<Buffer>,
  mostBytes = LARGEST_PART_BYTES,
): Promise<Recording> {
  const { dataAt, samples, levels } = await readLevels(wav);
  return { version: 1, dataAt, samples, parts: partsOf(levels, windowsWithin(mostBytes)), heard: [] };
}

interface RecordingPart {
  readonly stretch: Stretch;
  /** Where it lies in the WAV file, bytes. */
  readonly at: number;
  readonly bytes: number;
  readonly seconds: number;
}

/** The first part that was not heard yet; undefined when all were. */
export function nextPart({ parts, heard, dataAt, samples }: Recording): RecordingPart | undefined {
  const stretch = parts[heard.length];
  if (stretch === undefined) return undefined;
  const { at, bytes } = bytesOf({ dataAt, samples }, stretch);
  return { stretch, at, bytes, seconds: bytes / 2 / PCM_RATE };
}

export function withHeard(recording: Recording, { language, segments }: PartHeard): Recording {
  return { ...recording, heard: [...recording.heard, { language, segments: [...segments] }] };
}

/**
 * What was heard of all parts.
 * @param startOffsetSeconds where the recording begins on the source's clock
 * @param language what was asked for, if anything was
 */
export function transcriptOf(
  { parts, heard, samples }: Recording,
  startOffsetSeconds: number,
  language: string | undefined,
): Transcript {
  const heardParts = heard.map((part, index) => ({
    ...part,
    fromSeconds: ((parts[index]?.from ?? 0) * WINDOW_SAMPLES) / PCM_RATE,
  }));
  return joinParts(heardParts, { startOffsetSeconds, durationSeconds: samples / PCM_RATE }, language);
}
