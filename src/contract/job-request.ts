/**
 * What a caller may ask for: one job, or a batch of them (audio-extraction.md "Job request object"; decisions
 * A2 and C). Every default that does not depend on the source is filled in here, once.
 */
import { z } from 'zod';
import { FormatName, formatOf, parseBitrate, qualities } from './formats.ts';
import { UploadId } from './ids.ts';

/** Jobs in one batch at most (audio-extraction.md "Limits"). */
export const MAX_BATCH_JOBS = 10;

const MAX_URL_LENGTH = 2048;

export const UrlSource = z.strictObject({
  type: z.literal('url'),
  url: z.string().min(1).max(MAX_URL_LENGTH, `must be at most ${MAX_URL_LENGTH} characters`).meta({
    description: 'http(s) URL of the video at a public address',
    example: 'https://example.com/talk.mp4',
  }),
});

export const UploadSource = z.strictObject({
  type: z.literal('upload'),
  file: UploadId.meta({ description: 'A complete upload of the same tenant' }),
});

export const Source = z.discriminatedUnion('type', [UrlSource, UploadSource]);
export type Source = z.infer<typeof Source>;

const TrackChoice = z.union(
  [z.int().min(0).max(999), z.string().regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$/)],
  'must be an index from 0 or a BCP 47 / ISO 639 language',
);

/** How the output's seconds follow the source's (decisions A2a). */
const timelines = ['source', 'audio'] as const;
export type TimelineChoice = (typeof timelines)[number];

const BITRATE_FORM = /^[1-9]\d{0,2}k$/;

export const OutputRequest = z
  .strictObject({
    format: FormatName.meta({
      description:
        'mp3; aac (ADTS); m4a (AAC in MP4); flac; wav; ogg (Vorbis); opus (Ogg Opus); voice (Ogg Opus voice note, mono)',
    }),
    quality: z.enum(qualities).optional().meta({
      description:
        'Bitrate by format, or the bit depth of flac and wav. Default high, except that audio which needs no decoding is copied as it is',
    }),
    bitrate: z.string().regex(BITRATE_FORM, 'must be of the form 192k').optional().meta({
      description: 'Overrides quality; inside the range of the format. flac and wav take none',
      example: '192k',
    }),
    copy: z.enum(['auto', 'never']).default('auto').meta({
      description: 'auto: audio that is what was asked for already is copied; never: always encode',
    }),
    normalize: z.boolean().default(false).meta({
      description: 'Bring the loudness to a target by one constant gain, with a true-peak limit of −1 dBTP',
    }),
    loudness: z
      .number()
      .min(-36)
      .max(-6)
      .optional()
      .meta({ description: 'Integrated loudness to reach, LUFS (EBU R128); implies normalize. Default −16' }),
    track: TrackChoice.optional().meta({
      description:
        'Index among the audio tracks (0-based) or language; default: the default-flagged, else the first',
    }),
    start: z
      .number()
      .min(0)
      .optional()
      .meta({ description: 'Seconds into the source at which the output begins' }),
    end: z
      .number()
      .positive()
      .optional()
      .meta({ description: 'Seconds into the source at which the output ends; after start' }),
    timeline: z.enum(timelines).optional().meta({
      description:
        "source: the output's clock is the source's, silence fills a late beginning and gaps; audio: gaps are closed. Default source, for voice audio",
    }),
    // Optional, as everything that came after the first edition: a default would stand in what Idempotency-Keys of the last
    // day are bound to, and a repetition would be taken for another request.
    acceptTruncated: z.boolean().optional().meta({
      description:
        'Of a file that was cut off take what is there, with a warning, instead of failing. Default false',
    }),
    channels: z.literal([1, 2], 'must be 1 or 2').optional().meta({
      description:
        'Default: as the source, more than 2 mixed down to 2 except in flac and wav. voice takes only 1',
    }),
    sampleRate: z.int().min(8000).max(192_000).optional().meta({
      description:
        'Hz, one that the format takes (opus and voice: 48000). Default: as the source, or the nearest',
    }),
    preserveMetadata: z.boolean().default(true).meta({
      description: 'Keep tags, chapters and cover art where the container can hold them',
    }),
  })
  .superRefine(
    (output, context) => {
      for (const { field, message } of outputFaults(output)) {
        context.addIssue({ code: 'custom', path: [field], message });
      }
    },
    // Also when a field is faulty by itself, so that every fault is told at once.
    { when: () => true },
  )
  .overwrite((output) => ({
    ...output,
    normalize: output.normalize || output.loudness !== undefined,
  }));
/** One output as asked for, `normalize` already true when a loudness was given. */
export type OutputRequest = z.infer<typeof OutputRequest>;

interface OutputFault {
  readonly field: string;
  readonly message: string;
}

/** What of an output can be told although other fields are faulty. */
const Readable = z.object({
  format: FormatName.optional().catch(undefined),
  bitrate: z.string().regex(BITRATE_FORM).optional().catch(undefined),
  start: z.number().optional().catch(undefined),
  end: z.number().optional().catch(undefined),
  channels: z.number().optional().catch(undefined),
  sampleRate: z.number().optional().catch(undefined),
});

/** The rules that tie an output's fields together and to its format (decisions A2, last column). */
function outputFaults(output: unknown): OutputFault[] {
  const read = Readable.safeParse(output);
  if (!read.success) {
    return [];
  }
  const { format: name, bitrate, start = 0, end, channels, sampleRate } = read.data;
  const faults: OutputFault[] = [];
  if (end !== undefined && end <= start) {
    faults.push({ field: 'end', message: 'must be greater than start' });
  }
  if (name === undefined) {
    return faults;
  }
  const { bitrateRange, sampleRates } = formatOf(name);
  if (bitrate !== undefined) {
    faults.push(...bitrateFaults(name, parseBitrate(bitrate), bitrateRange));
  }
  if (name === 'voice' && channels === 2) {
    faults.push({ field: 'channels', message: 'must be 1 for voice' });
  }
  if (sampleRate !== undefined && sampleRates !== null && !sampleRates.includes(sampleRate)) {
    faults.push({ field: 'sampleRate', message: `must be one of ${sampleRates.join(', ')} for ${name}` });
  }
  return faults;
}

function bitrateFaults(
  name: FormatName,
  kbps: number,
  range: { readonly min: number; readonly max: number } | null,
): OutputFault[] {
  if (range === null) {
    return [{ field: 'bitrate', message: `${name} is lossless and takes no bitrate` }];
  }
  return kbps < range.min || kbps > range.max
    ? [{ field: 'bitrate', message: `must be ${range.min}k to ${range.max}k for ${name}` }]
    : [];
}

/**
 * Where the result goes as a push-to-talk message: the fields of the gateway's audio send operation except
 * `audio` (decisions C; messaging-gateway.md "Send audio message").
 */
export const VoiceMessageRequest = z.strictObject({
  instance: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be the name or id of a gateway instance')
    .meta({ description: 'Name or id of the gateway instance that sends', example: 'support' }),
  number: z
    .union([z.string(), z.int().nonnegative()])
    .transform(String)
    .pipe(z.string().min(1).max(128))
    .meta({ description: 'Recipient number with country code, or a JID', example: '+12025550123' }),
  delay: z.int().min(0).max(60_000).optional().meta({ description: 'Presence time before the message, ms' }),
  linkPreview: z.boolean().optional(),
  mentionsEveryOne: z.boolean().optional(),
  mentioned: z
    .array(z.string().min(1).max(128))
    .max(1024)
    .optional()
    .meta({ description: 'Who is mentioned: numbers or JIDs' }),
  quoted: z
    .object({
      key: z.object({ id: z.string().min(1).max(128) }),
      message: z.object({ conversation: z.string().max(4096).optional() }).optional(),
    })
    .optional()
    .meta({ description: 'The message that this one answers; key.id is enough' }),
  split: z.boolean().optional().meta({
    description:
      'Whether audio that does not fit one voice bubble becomes a run of notes, cut in pauses and sent in order; default false',
  }),
  trimSilence: z.boolean().optional().meta({
    description:
      'Whether pauses above 1 s are shortened to 0.5 s in the notes, and there alone; default false',
  }),
});
export type VoiceMessageRequest = z.infer<typeof VoiceMessageRequest>;

// Control characters, path separators and halves of surrogate pairs can neither be shown nor stored as a name.
const SAFE_FILENAME = /^[^\p{Cc}\p{Cs}/\\]+$/u;

/** As a job has them. OpenAPI documents call those that may be asked for `JobOptions`, and these `JobOptionsInForce`. */
export const JobOptions = z
  .strictObject({
    filename: z
      .string()
      .min(1)
      .max(200)
      .regex(SAFE_FILENAME, 'must not contain path separators, control characters or half characters')
      .optional()
      .meta({ description: 'Name without extension; default: the name of the source' }),
    webhook: z.string().max(MAX_URL_LENGTH).optional().meta({ description: 'https URL at a public address' }),
    priority: z
      .enum(['low', 'normal', 'high'])
      .default('normal')
      .meta({ description: 'high needs a key with the scope priority' }),
    voiceMessage: VoiceMessageRequest.optional(),
  })
  .meta({ id: 'KeptJobOptions', outputId: 'JobOptionsInForce' });
export type JobOptions = z.infer<typeof JobOptions>;
export type Priority = JobOptions['priority'];

// Bidirectional controls (Unicode's property Bidi_Control) make a name read as another one.
const UNAMBIGUOUS_FILENAME = /^(?!\.{1,2}$)[^\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u;

/** As they may be asked for; those of earlier jobs are read by {@link JobOptions}. */
export const RequestedOptions = JobOptions.extend({
  filename: JobOptions.shape.filename
    .unwrap()
    .regex(UNAMBIGUOUS_FILENAME, 'must not be . or .., nor contain bidirectional controls')
    .optional()
    .meta({ description: 'Name without extension; default: the name of the source' }),
});

export const JobRequest = z.strictObject({
  source: Source,
  output: OutputRequest,
  options: RequestedOptions.prefault({}),
});
export type JobRequest = z.infer<typeof JobRequest>;

/** The `request` part of a multipart submission: a job without its source, which is the `file` part. */
export const UploadedJobRequest = z.strictObject({
  output: OutputRequest,
  options: RequestedOptions.prefault({}),
});

export const BatchRequest = z.strictObject({
  jobs: z.array(JobRequest).min(1, 'must hold at least 1 job'),
  webhook: z
    .string()
    .max(MAX_URL_LENGTH)
    .optional()
    .meta({ description: 'Told of the end of each job that names no webhook of its own' }),
  voiceMessage: VoiceMessageRequest.optional(),
});
export type BatchRequest = z.infer<typeof BatchRequest>;
