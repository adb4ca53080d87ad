/** What the transcription door answers, by `response_format` (decisions F1; pure). */
import type { Subtitles } from 'soundpost-contract/transcripts';
import { z } from 'zod';
import type { LateForm } from './patience.ts';

const Segment = z.object({ start: z.number(), end: z.number(), text: z.string() });

/** The file of a transcript with `subtitles: json`, as src/followups/transcripts writes it. */
const Spoken = z.object({
  language: z.string().nullable(),
  duration: z.number(),
  text: z.string(),
  segments: z.array(Segment),
  words: z.array(Segment).optional(),
});
type Spoken = z.infer<typeof Spoken>;

type Task = 'transcribe' | 'translate';

interface ResponseFormat extends LateForm {
  /** What the job writes. */
  readonly subtitles: Subtitles;
  /** From the transcript's file. */
  readonly write: (text: string, task: Task) => string;
}

const read = (text: string): Spoken => Spoken.parse(JSON.parse(text));
const asItIs = (text: string): string => text;
const JSON_FORM = { mediaType: 'application/json', head: '', filler: ' ', subtitles: 'json' } as const;
const TEXT_FORM = { mediaType: 'text/plain; charset=utf-8', head: '', filler: '\n', write: asItIs } as const;

export const responseFormats = {
  json: { ...JSON_FORM, write: (text) => JSON.stringify({ text: read(text).text }) },
  text: { ...TEXT_FORM, subtitles: 'txt' },
  srt: { ...TEXT_FORM, subtitles: 'srt' },
  verbose_json: {
    ...JSON_FORM,
    write: (text, task) => JSON.stringify(verbose(read(text), task)),
  },
  vtt: {
    ...{ mediaType: 'text/vtt; charset=utf-8', head: 'WEBVTT\n\n', filler: 'NOTE\n\n' },
    ...{ subtitles: 'vtt', write: asItIs },
  },
} as const satisfies Record<string, ResponseFormat>;

/** What clients' types demand of a segment, and a transcript of several parts does not keep. */
const DECODER = { tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 };

function verbose({ language, duration, text, segments, words }: Spoken, task: Task): object {
  return {
    task,
    language: nameOf(language),
    duration,
    text,
    segments: segments.map((segment, id) => ({ id, seek: 0, ...segment, ...DECODER })),
    ...(words && { words: words.map(({ start, end, text: word }) => ({ word, start, end })) }),
  };
}

/** `english`, as OpenAI answers it; an empty text if the transcriber does not say. */
function nameOf(language: string | null): string {
  const [code = ''] = language?.split('-') ?? [];
  const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'code' });
  return code === '' ? '' : (names.of(code) ?? code).toLowerCase();
}

const said = z.string().meta({ example: 'Good morning, everybody.' });

export const Transcription = z.object({ text: said });

export const VerboseTranscription = z.object({
  task: z.enum(['transcribe', 'translate']),
  language: z.string().meta({ example: 'english' }),
  duration: z.number().meta({ description: 'Of the audio, seconds' }),
  text: said,
  segments: z.array(
    Segment.extend({
      id: z.int(),
      seek: z.int(),
      tokens: z
        .array(z.int())
        .meta({ description: 'Always empty, as the four after it are always the same' }),
      temperature: z.number(),
      avg_logprob: z.number(),
      compression_ratio: z.number(),
      no_speech_prob: z.number(),
    }),
  ),
  words: z
    .array(z.object({ word: z.string(), start: z.number(), end: z.number() }))
    .optional()
    .meta({ description: 'With `timestamp_granularities[]=word`, if the transcriber gives them' }),
});
