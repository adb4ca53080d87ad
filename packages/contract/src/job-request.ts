/**
 * What a caller may request: one job, or a batch of them (audio-extraction.md "Job request object";
 * decisions A2 and C). Every default that does not depend on the source is filled in here, once.
 */
import { z } from 'zod';
import { DestinationRequest, headerBytes, MAX_DESTINATION_HEADER_BYTES } from './destination.ts';
import { UploadId } from './ids.ts';
import { isProbe, LoneOutputRequest, OutputsRequest } from './output-request.ts';
import { CONNECTION_HEADERS, headerFields } from './request-headers.ts';

/** Jobs in one batch at most (audio-extraction.md "Limits"). */
export const MAX_BATCH_JOBS = 10;

const MAX_URL_LENGTH = 2048;

const MAX_SOURCE_HEADER_BYTES = 4 * 1024;
const SET_BY_US = new RegExp(`^(${CONNECTION_HEADERS}|range|if-.*|content-.*|transfer-.*)$`);

export const UrlSource = z.strictObject({
  type: z.literal('url'),
  url: z.string().min(1).max(MAX_URL_LENGTH, `must be at most ${MAX_URL_LENGTH} characters`).meta({
    description: 'http(s) URL of the video at a public address',
    example: 'https://example.com/talk.mp4',
  }),
  headers: headerFields({
    ...{ reserved: SET_BY_US, setBy: 'the service', longestValue: MAX_SOURCE_HEADER_BYTES, most: 10 },
  })
    .refine((headers) => headerBytes(headers) <= MAX_SOURCE_HEADER_BYTES, {
      error: 'must have at most 4 KiB in total, names and values',
    })
    .optional()
    .meta({
      description:
        'Headers such as Authorization, sent only to the scheme, host and port of url; at most 10, 4 KiB in total. Stored encrypted; answers show only the names',
      example: { Authorization: 'Bearer eyJhbGciOi' },
    }),
});

export const UploadSource = z.strictObject({
  type: z.literal('upload'),
  file: UploadId.meta({ description: 'A complete upload of the same key' }),
});

/** Bytes of a source in the request itself, decoded. */
const MAX_DATA_BYTES = 8 * 1024 * 1024;

export const DataSource = z.strictObject({
  type: z.literal('data'),
  data: z
    .string()
    .superRefine((data, context) => {
      const digits = base64Of(data);
      const message =
        digits === undefined
          ? 'must be base64, or a data URI with base64'
          : Math.floor((digits.length * 3) / 4) > MAX_DATA_BYTES
            ? 'must have at most 8 MiB decoded; upload larger files'
            : undefined;
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .meta({
      description: 'The video in base64 or as a base64 data URI, at most 8 MiB decoded; stored as an upload',
      example: 'data:video/mp4;base64,AAAAIGZ0eXBpc29t',
    }),
});

/**
 * The digits alone; undefined for what is neither base64 (also URL-safe) nor a data URI with it.
 */
function base64Of(data: string): string | undefined {
  const digits = data
    .replace(/^data:[^,]*;base64,/i, '')
    .replaceAll(/\s+/g, '')
    .replace(/={1,2}$/, '');
  return /^[A-Za-z0-9+/_-]+$/.test(digits) ? digits : undefined;
}

export const Source = z.discriminatedUnion('type', [UrlSource, UploadSource, DataSource]);

const BatchSource = z.discriminatedUnion('type', [UrlSource, UploadSource], {
  error: ({ code }) =>
    code === 'invalid_union' ? 'must be url or upload; data is only for POST /v1/extract' : undefined,
});

/**
 * Where the result goes as a push-to-talk message: the fields of the gateway's audio send operation
 * except `audio` (decisions C; messaging-gateway.md "Send audio message").
 */
export const VoiceMessageRequest = z.strictObject({
  instance: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be the name or id of a gateway instance')
    .meta({ description: 'Name or id of the sending gateway instance', example: 'support' }),
  number: z
    .union([z.string(), z.int()], 'must be a phone number or a JID')
    .transform(String)
    .pipe(z.string().min(1).max(128))
    .meta({ description: 'The recipient’s number with country code, or a JID', example: '+12025550123' }),
  delay: z
    .int()
    .min(0)
    .max(60_000)
    .optional()
    .meta({ description: 'How long to show “recording” before the message, ms' }),
  linkPreview: z.boolean().optional(),
  mentionsEveryOne: z.boolean().optional(),
  mentioned: z
    .array(z.string().min(1).max(128))
    .max(1024)
    .optional()
    .meta({ description: 'People to mention: numbers or JIDs' }),
  quoted: z
    .object({
      key: z.object({ id: z.string().min(1).max(128) }),
      message: z.object({ conversation: z.string().max(4096).optional() }).optional(),
    })
    .optional()
    .meta({ description: 'The message to reply to; key.id is enough' }),
  split: z.boolean().optional().meta({
    description:
      'Sends audio that is too long for one voice bubble as several notes, cut in pauses, in order. Default false',
  }),
  trimSilence: z.boolean().optional().meta({
    description: 'Shortens pauses above 1 s to 0.5 s, only in the notes. Default false',
  }),
});
export type VoiceMessageRequest = z.infer<typeof VoiceMessageRequest>;

// Control characters, path separators and lone surrogates cannot be shown or stored in a name.
const SAFE_FILENAME = /^[^\p{Cc}\p{Cs}/\\]+$/u;
// Bidirectional controls (Unicode's property Bidi_Control) make a name read as another one.
const UNAMBIGUOUS_FILENAME = /^(?!\.{1,2}$)[^\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*$/u;

export const JobOptions = z.strictObject({
  filename: z
    .string()
    .min(1)
    .max(200)
    .regex(SAFE_FILENAME, 'must not contain path separators, control characters or lone surrogates')
    .regex(UNAMBIGUOUS_FILENAME, 'must not be . or .., nor contain bidirectional controls')
    .optional()
    .meta({ description: 'File name without extension. Default: the source’s name' }),
  webhook: z
    .string()
    .max(MAX_URL_LENGTH)
    .optional()
    .meta({ description: 'https URL at a public address, which gets the job’s events' }),
  priority: z
    .enum(['low', 'normal', 'high'])
    .default('normal')
    .meta({ description: 'high needs the scope priority' }),
  voiceMessage: VoiceMessageRequest.optional(),
});
export type JobOptions = z.infer<typeof JobOptions>;
export type Priority = JobOptions['priority'];

/** What is made of the source: exactly one of the two (decisions A8). */
const asked = {
  output: LoneOutputRequest.optional().meta({ description: 'One output; or use outputs' }),
  outputs: OutputsRequest.optional().meta({
    description: '1 to 32 named outputs from one download and one decode, instead of output',
  }),
  destination: DestinationRequest.optional().meta({
    description:
      'Where to upload finished files without a destination of their own; for several outputs, the path needs {name}',
  }),
};

function refuseBothOrNeither(job: unknown, context: z.RefinementCtx): void {
  if (typeof job !== 'object' || job === null) return;
  const isGiven = (field: string): boolean => field in job && job[field as keyof typeof job] !== undefined;
  if (isGiven('output') && isGiven('outputs')) {
    context.addIssue({ code: 'custom', path: [], message: 'output and outputs cannot be combined' });
  } else if (!isGiven('output') && !isGiven('outputs')) {
    context.addIssue({ code: 'custom', path: ['output'], message: 'is required, unless outputs is given' });
  }
}

const HandedOn = z.object({
  options: z.object({ voiceMessage: z.unknown().optional() }).optional().catch(undefined),
  destination: z.unknown().optional(),
});

/** A probe makes no file that could go anywhere. */
function refuseHandingOn(job: unknown, context: z.RefinementCtx): void {
  // Not by a schema: its refusal of all other jobs would take longer than the rest of the parsing.
  if (typeof job !== 'object' || job === null || !isProbe(job)) return;
  const { data } = HandedOn.safeParse(job);
  const refuse = (path: string[], verb: string): void =>
    context.addIssue({
      code: 'custom',
      path,
      message: `must not be given: a probe makes no file to ${verb}`,
    });
  if (data?.options?.voiceMessage !== undefined) refuse(['options', 'voiceMessage'], 'send');
  if (data?.destination !== undefined) refuse(['destination'], 'put there');
}

interface Destined {
  readonly format?: unknown;
  readonly destination?: DestinationRequest | undefined;
}

function limitHeaders(
  job: Destined & {
    readonly output?: Destined | undefined;
    readonly outputs?: readonly Destined[] | undefined;
  },
  context: z.RefinementCtx,
): void {
  const all = [job, job.output, ...(job.outputs ?? [])];
  const bytes = all.reduce((sum, one) => sum + headerBytes(one?.destination?.headers ?? {}), 0);
  if (bytes > MAX_DESTINATION_HEADER_BYTES) {
    const message = 'the headers of all destinations of a job must have at most 8 KiB in total';
    context.addIssue({ code: 'custom', path: [], message });
  }
}

function jobFrom<Sources extends z.ZodType>(source: Sources) {
  return z
    .strictObject({ source, ...asked, options: JobOptions.prefault({}) })
    .superRefine(refuseBothOrNeither, { when: () => true })
    .superRefine(refuseHandingOn, { when: () => true })
    .superRefine(limitHeaders);
}

export const JobRequest = jobFrom(Source);
export type JobRequest = z.infer<typeof JobRequest>;

/** Of a batch: without a source in the request itself. */
export const BatchJobRequest = jobFrom(BatchSource);
export type BatchJobRequest = z.infer<typeof BatchJobRequest>;

/** The `request` part of a multipart submission: a job whose source is the `file` part. */
export const UploadedJobRequest = z
  .strictObject({ ...asked, options: JobOptions.prefault({}) })
  .superRefine(refuseBothOrNeither, { when: () => true })
  .superRefine(refuseHandingOn, { when: () => true })
  .superRefine(limitHeaders);

export const BatchRequest = z
  .strictObject({
    jobs: z.array(BatchJobRequest).min(1, 'must hold at least 1 job'),
    webhook: z
      .string()
      .max(MAX_URL_LENGTH)
      .optional()
      .meta({ description: 'Gets the events of each job without a webhook of its own' }),
    voiceMessage: VoiceMessageRequest.optional(),
  })
  .superRefine(({ jobs, voiceMessage }, context) => {
    const probe = voiceMessage === undefined ? -1 : jobs.findIndex(isProbe);
    if (probe === -1) return;
    const message = `must not be given: jobs[${probe}] is a probe, which makes no file to send`;
    context.addIssue({ code: 'custom', path: ['voiceMessage'], message });
  });
export type BatchRequest = z.infer<typeof BatchRequest>;
