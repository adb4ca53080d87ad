/**
 * Reads a transcriber's answer defensively: `verbose_json` of OpenAI's `POST
 * /v1/audio/transcriptions` (pure). Servers differ in extra fields, and in `en` or `english`.
 */
import { OddJson, parseJson } from 'soundpost-base/json';
import { z } from 'zod';
import { languageOf } from './language.ts';

/**
 * For a part of 13 minutes, four a second: Whisper's last 2 to 10 s. Of 6 h they are read in 0.1 s.
 */
const MOST_SEGMENTS = 3_000;
/** Code units; Whisper's segments hold 30 s at most. */
const LONGEST_TEXT = 2_000;
/** Per part: 250 code units a second for 13 minutes, which nobody says. Each attempt rereads it. */
const MOST_TEXT = 200_000;
/** Whisper's window: the last segment can end after the part. */
const WINDOW_SECONDS = 30;

/** As many as Whisper's tokens: 224 of each 30 s. */
const MOST_WORDS = 10_000;

const Answer = z.object({
  language: z.string().max(64).optional().catch(undefined),
  text: z.string().optional(),
  segments: z
    .array(z.object({ start: z.number(), end: z.number(), text: z.string().max(LONGEST_TEXT) }))
    .max(MOST_SEGMENTS)
    .optional(),
  // Not every transcriber has them: without them there are the segments.
  words: z
    .array(z.object({ start: z.number(), end: z.number(), word: z.string().max(LONGEST_TEXT) }))
    .max(MOST_WORDS)
    .optional()
    .catch(undefined),
  error: z.unknown().optional(),
});

/** What was said and when, seconds. */
export interface Segment {
  readonly start: number;
  /** Not before `start`. */
  readonly end: number;
  /** Without control characters and line breaks; never empty. */
  readonly text: string;
}

/** Text of a part, with times from its start. */
export interface PartHeard {
  /** BCP 47; null if the transcriber does not say. */
  readonly language: string | null;
  readonly segments: readonly Segment[];
  /** Each word as a segment; absent if none were asked for or given. */
  readonly words?: readonly Segment[] | undefined;
}

/** Why an answer is unusable, for the transcriber's operator. */
export class NonsenseAnswer extends Error {
  override readonly name = 'NonsenseAnswer';
}

/**
 * @param body of the answer, JSON
 * @param partSeconds length of the part; later times are moved to its end
 * @throws NonsenseAnswer
 */
export function readAnswer(body: string, partSeconds: number): PartHeard {
  const parsed = Answer.safeParse(readJson(body));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new NonsenseAnswer(`no verbose_json: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
  }
  const { language, text, segments, words, error } = parsed.data;
  if (text === undefined && segments === undefined) throw new NonsenseAnswer('neither text nor segments');
  const length = (segments ?? []).reduce((sum, segment) => sum + segment.text.length, 0);
  if (length > MOST_TEXT) throw new NonsenseAnswer(`more than ${MOST_TEXT} characters of a part`);
  const heard = (segments ?? [])
    .map((segment) => within(segment, partSeconds))
    .filter((segment) => segment.text !== '');
  if (heard.length === 0) {
    // Only silence has neither.
    if (WORDS.test(text ?? ''))
      throw new NonsenseAnswer('words without times: the model has to know verbose_json');
    if (error != null) throw new NonsenseAnswer('an error instead of words');
  }
  return {
    language: languageOf(language),
    segments: heard.sort((one, other) => one.start - other.start),
    ...(words && { words: wordsWithin(words, partSeconds) }),
  };
}

function readJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw new NonsenseAnswer(error instanceof OddJson ? error.message : 'no JSON');
  }
}

function within({ start, end, text }: Segment, partSeconds: number): Segment {
  const isSound = end >= start && start >= -1 && start <= partSeconds + WINDOW_SECONDS;
  if (!isSound) {
    throw new NonsenseAnswer(`words at ${start} to ${end} s of a part of ${partSeconds.toFixed(2)} s`);
  }
  const inside = (time: number): number => Math.min(Math.max(0, time), partSeconds);
  return { start: inside(start), end: inside(end), text: clean(text) };
}

function wordsWithin(
  words: readonly { readonly start: number; readonly end: number; readonly word: string }[],
  partSeconds: number,
): Segment[] {
  return words
    .map(({ start, end, word }) => within({ start, end, text: word }, partSeconds))
    .filter(({ text }) => text !== '');
}

/** A character that {@link clean} keeps. Of a text of any length the first one is enough. */
const WORDS = /[^\p{Cc}\s]/u;

/** One line of printable characters. */
function clean(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
}
