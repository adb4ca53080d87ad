/** How a transcript may be requested, and how it is reported (decisions A8). */
import { z } from 'zod';
import { ErrorBody } from './errors.ts';
import { type OutputFormatName, outputFormats } from './formats.ts';
import { OutputName } from './ids.ts';

/** The files of a transcript, with extension and media type. */
export const subtitles = {
  /** WebVTT (W3C). */
  vtt: { extension: 'vtt', mediaType: 'text/vtt; charset=utf-8' },
  /** SubRip, which has no standard; as ffmpeg and VLC read it. */
  srt: { extension: 'srt', mediaType: 'application/x-subrip; charset=utf-8' },
  /** `{language, duration, segments: [{start, end, text}], text}`, times in seconds. */
  json: { extension: 'json', mediaType: 'application/json' },
  /** The words alone, a paragraph for each stretch of speech. */
  txt: { extension: 'txt', mediaType: 'text/plain; charset=utf-8' },
} as const;

export type Subtitles = keyof typeof subtitles;
export const Subtitles = z.enum(Object.keys(subtitles) as [Subtitles, ...Subtitles[]]);

export const DEFAULT_SUBTITLES: Subtitles = 'vtt';

/** The extension and media type of an output's file. */
export function fileKindOf(output: { readonly format: OutputFormatName; readonly subtitles?: Subtitles }): {
  readonly extension: string;
  readonly mediaType: string;
} {
  return output.subtitles === undefined ? outputFormats[output.format] : subtitles[output.subtitles];
}

/** BCP 47; the transcriber gets its ISO 639-1 part. */
export const SpokenLanguage = z
  .string()
  .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$/, 'must be a BCP 47 / ISO 639 language such as en')
  .meta({ example: 'en' });

export const TranscriptState = z.object({
  name: OutputName.meta({ description: 'The output’s name', example: 'words' }),
  status: z
    .enum(['pending', 'completed', 'failed'])
    .meta({ description: 'Stays pending while the transcriber is unavailable, up to 24 hours' }),
  language: SpokenLanguage.nullable().meta({
    description: 'The requested language, else the detected one; null until completed, or if unknown',
    example: 'en',
  }),
  error: ErrorBody.nullable().meta({ description: 'TRANSCRIPT_FAILED, if it failed' }),
});
export type TranscriptState = z.infer<typeof TranscriptState>;
