/**
 * What a caller may request of a source: one output, or several from one fetch and one decode
 * (decisions A2, A3 and A8). Every default that does not depend on the source is filled in here.
 */
import { z } from 'zod';
import { DestinationRequest } from './destination.ts';
import {
  FormatName,
  formatOf,
  formats,
  isAudioFormat,
  outputFormats,
  parseBitrate,
  qualities,
  timelines,
} from './formats.ts';
import { ONLY_OUTPUT, OutputName } from './ids.ts';
import { DEFAULT_SUBTITLES, SpokenLanguage, Subtitles } from './transcripts.ts';

const TrackChoice = z.union(
  [z.int().min(0).max(999), z.string().regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$/)],
  'must be an index from 0, a BCP 47 / ISO 639 language or mix',
);

const ChannelChoice = z.union(
  [z.enum(['left', 'right']), z.int().min(0).max(254)],
  'must be left, right or an index from 0',
);

/** How the output's seconds follow the source's (decisions A2a). */
export type TimelineChoice = (typeof timelines)[number];

/** Which part of which track, for every kind of output. */
const cut = {
  track: TrackChoice.optional().meta({
    description:
      'An index from 0, a language, or mix: all decodable tracks together, each at its own level, limited to −1 dBTP. Default: the track flagged as default, else the first, of those that can be decoded',
  }),
  start: z.number().min(0).optional().meta({ description: 'Where the output begins, seconds of the source' }),
  end: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Where the output ends, seconds of the source; must be after start' }),
};

/** And on which clock. */
const taken = {
  ...cut,
  timeline: z.enum(timelines).optional().meta({
    description:
      'source: keeps the source’s clock and fills a late beginning and gaps with silence; audio: closes gaps. Default source; audio for voice',
  }),
};

/** Also for every kind: where its file is put (decisions A8). */
const placed = {
  destination: DestinationRequest.optional().meta({
    description: 'Where to upload the finished file, instead of the job’s destination',
  }),
};

function reportFaults(output: unknown, context: z.RefinementCtx): void {
  for (const { field, message } of outputFaults(output)) {
    context.addIssue({ code: 'custom', path: [field], message });
  }
}

/** Also when a field itself is faulty, so that all faults are reported together. */
const ALWAYS = { when: () => true };

const BITRATE_FORM = /^[1-9]\d{0,2}k$/;

export const OutputRequest = z
  .strictObject({
    format: FormatName.meta({
      description:
        'mp3; aac (ADTS); m4a (AAC in MP4); m4b (m4a as an audiobook); flac; wav; ogg (Vorbis); opus (Ogg Opus); voice (Ogg Opus voice note, mono)',
    }),
    quality: z.enum(qualities).optional().meta({
      description:
        'Sets the bitrate, or the bit depth of flac and wav. Default high, unless the audio can be copied',
    }),
    bitrate: z.string().regex(BITRATE_FORM, 'must be of the form 192k').optional().meta({
      description: 'Overrides quality; must be in the range of the format. Not for flac and wav',
      example: '192k',
    }),
    copy: z.enum(['auto', 'never']).default('auto').meta({
      description: 'auto: copies audio that already has the requested form; never: always encodes',
    }),
    normalize: z.boolean().default(false).meta({
      description: 'Brings the loudness to its target with one constant gain, limited to −1 dBTP',
    }),
    loudness: z
      .number()
      .min(-36)
      .max(-6)
      .optional()
      .meta({ description: 'Target integrated loudness, LUFS (EBU R128); implies normalize. Default −16' }),
    ...taken,
    trimSilence: z.boolean().optional().meta({
      description:
        'Shortens pauses above 1 s to 0.5 s. Only with timeline audio; chapters are dropped. Default false',
    }),
    acceptTruncated: z.boolean().optional().meta({
      description: 'Accepts a truncated file with a warning instead of failing. Default false',
    }),
    channels: z.literal([1, 2], 'must be 1 or 2').optional().meta({
      description:
        'Default: as the source, but more than 2 are mixed down to 2, except in flac and wav. voice: only 1',
    }),
    channel: ChannelChoice.optional().meta({
      description: 'Takes one channel of the track as mono; left is 0, right is 1. Default all',
    }),
    sampleRate: z.int().min(8000).max(192_000).optional().meta({
      description:
        'Hz, supported by the format (opus: 48000, voice: 16000). Default: as the source, or the nearest',
    }),
    preserveMetadata: z.boolean().default(true).meta({
      description: 'Keeps tags, chapters and cover art, if the container supports them',
    }),
    ...placed,
  })
  .superRefine(reportFaults, ALWAYS)
  .overwrite((output) => ({
    ...output,
    normalize: output.normalize || output.loudness !== undefined,
  }));
/** One output as requested, `normalize` already true when a loudness was given. */
export type OutputRequest = z.infer<typeof OutputRequest>;

/** One of several outputs: audio. */
export const NamedOutputRequest = OutputRequest.safeExtend({ name: OutputName });

/** One of several outputs: a waveform to draw. Other fields are INVALID_OUTPUT (decisions A8). */
export const WaveformRequest = z
  .strictObject({
    format: z.literal('waveform'),
    name: OutputName,
    ...taken,
    ...placed,
    pixelsPerSecond: z
      .number()
      .min(1)
      .max(100)
      .default(20)
      .meta({ description: 'Pairs of lowest and highest sample per second of audio. Default 20' }),
  })
  .superRefine(reportFaults, ALWAYS);
export type WaveformRequest = z.infer<typeof WaveformRequest>;

/** Whisper reads the last 224 tokens of a prompt. */
const MAX_PROMPT_LENGTH = 4000;

/**
 * One of several outputs: the speech, always in source time. Other fields are INVALID_OUTPUT
 * (decisions A8).
 */
export const TranscriptRequest = z
  .strictObject({
    format: z.literal('transcript'),
    name: OutputName,
    ...cut,
    ...placed,
    subtitles: Subtitles.default(DEFAULT_SUBTITLES).meta({
      description: 'WebVTT, SubRip, JSON with segments, or plain text. Default vtt',
    }),
    language: SpokenLanguage.optional().meta({
      description: 'The spoken language. Default: the transcriber detects it',
      example: 'en',
    }),
  })
  .superRefine(reportFaults, ALWAYS);

/** What only the transcription door can ask for, so that no other submission may (decisions F1). */
export const transcriptionFields = {
  task: z.literal('translate').optional().meta({ description: 'Translates the speech to English' }),
  prompt: z
    .string()
    .max(MAX_PROMPT_LENGTH, `must be at most ${MAX_PROMPT_LENGTH} characters`)
    .optional()
    .meta({ description: 'Hints for the transcriber about style and names' }),
  temperature: z.number().min(0).max(1).optional(),
  words: z.literal(true).optional().meta({ description: 'Adds the time of each word' }),
};

export const TranscriptionRequest = TranscriptRequest.safeExtend(transcriptionFields);
/** The fields of the transcription door are undefined in all other jobs. */
export type TranscriptRequest = z.infer<typeof TranscriptionRequest>;

/**
 * In place of audio: what is in the source, and no file. Other fields are INVALID_OUTPUT
 * (decisions A2).
 */
export const ProbeRequest = z.strictObject({
  format: z.literal('probe').meta({
    description: 'Describes the source in inputFile and makes no file',
  }),
});

/** The `output` of a job. */
export const LoneOutputRequest = z.discriminatedUnion('format', [OutputRequest, ProbeRequest], {
  error: ({ code }) =>
    code === 'invalid_union' ? `must be one of ${Object.keys(formats).join(', ')}, probe` : undefined,
});

const AnyOutputRequest = z.discriminatedUnion(
  'format',
  [NamedOutputRequest, WaveformRequest, TranscriptRequest],
  {
    error({ code, input }) {
      if (code !== 'invalid_union') return undefined;
      return ReadableFormat.safeParse(input).data?.format === 'probe'
        ? 'must not be probe, which makes no file; use output instead of outputs'
        : `must be one of ${Object.keys(outputFormats).join(', ')}`;
    },
  },
);
const AcceptedOutput = z.discriminatedUnion('format', [
  NamedOutputRequest,
  WaveformRequest,
  TranscriptionRequest,
]);

const ReadableFormat = z.object({ format: z.unknown() });

/** Outputs of one job at most (decisions A8). */
const MAX_OUTPUTS = 32;

export const OutputsRequest = z
  .array(AnyOutputRequest)
  .min(1, 'must hold at least 1 output')
  .max(MAX_OUTPUTS, `must hold at most ${MAX_OUTPUTS} outputs`)
  .superRefine(
    (outputs, context) => {
      for (const { index, field, message } of faultsAmong(outputs)) {
        context.addIssue({ code: 'custom', path: [index, field], message });
      }
    },
    { when: () => true },
  );

/** As jobs have them: those of the transcription door have a transcript alone (decisions A8). */
export const AcceptedOutputs = z.array(AcceptedOutput).min(1).max(MAX_OUTPUTS);

export type NamedOutput = z.infer<typeof AcceptedOutput>;

/** As requested: one of the two. */
export interface AskedOutputs {
  readonly output?: z.infer<typeof LoneOutputRequest> | undefined;
  readonly outputs?: NamedOutput[] | undefined;
}

/** Whether a job says what is in the source, and makes no file. */
export function isProbe({ output }: Pick<AskedOutputs, 'output'>): boolean {
  return output?.format === 'probe';
}

type SomeOutputs = readonly [NamedOutput, ...NamedOutput[]];

/**
 * What a job makes, in order; an `output` alone is named `audio`. The first is audio, except in
 * jobs of the transcription door. A probe, or a job whose record cannot be read, makes nothing.
 */
export function outputsOf(asked: { readonly outputs: NamedOutput[] }): SomeOutputs;
export function outputsOf(asked: AskedOutputs): SomeOutputs | readonly [];
export function outputsOf({ output, outputs }: AskedOutputs): SomeOutputs | readonly [] {
  if (output?.format === 'probe' || (output === undefined && outputs === undefined)) return [];
  const [first, ...others] = output === undefined ? (outputs ?? []) : [{ ...output, name: ONLY_OUTPUT }];
  if (first === undefined) throw new Error('a job has no output');
  return [first, ...others];
}

/** The transcripts among what a job makes. */
export function transcriptsOf({ outputs = [] }: AskedOutputs): readonly TranscriptRequest[] {
  return outputs.filter((output) => output.format === 'transcript');
}

/** What can be read of the outputs although some are faulty. */
const ReadableOutputs = z.array(
  z
    .object({
      name: z.string().optional().catch(undefined),
      format: z.string().optional().catch(undefined),
      acceptTruncated: z.boolean().optional().catch(undefined),
    })
    .catch({}),
);

/** The rules that tie outputs together (decisions A8). */
function faultsAmong(outputs: unknown): (OutputFault & { readonly index: number })[] {
  const read = ReadableOutputs.safeParse(outputs);
  if (!read.success) return [];
  const names = read.data.map(({ name }) => name);
  const acceptsTruncated = read.data.some(({ acceptTruncated = false }) => acceptTruncated);
  return read.data.flatMap(({ name, format, acceptTruncated = false }, index) => {
    const faults: OutputFault[] = [];
    if (
      index === 0 &&
      format !== undefined &&
      Object.hasOwn(outputFormats, format) &&
      !isAudioFormat(format)
    ) {
      faults.push({ field: 'format', message: `must be an audio format in the first output, not ${format}` });
    }
    if (name !== undefined && names.indexOf(name) < index) {
      faults.push({ field: 'name', message: `"${name}" is the name of another output` });
    }
    if (isAudioFormat(format) && acceptTruncated !== acceptsTruncated) {
      faults.push({
        field: 'acceptTruncated',
        message: 'must be true in all audio outputs, or in none',
      });
    }
    return faults.map((fault) => ({ index, ...fault }));
  });
}

interface OutputFault {
  readonly field: string;
  readonly message: string;
}

/** What can be read of an output although other fields are faulty. */
const Readable = z.object({
  /** Undefined also if it is no audio. */
  format: FormatName.optional().catch(undefined),
  bitrate: z.string().regex(BITRATE_FORM).optional().catch(undefined),
  start: z.number().optional().catch(undefined),
  end: z.number().optional().catch(undefined),
  channels: z.number().optional().catch(undefined),
  channel: z.unknown().optional(),
  timeline: z.unknown().optional(),
  trimSilence: z.unknown().optional(),
  sampleRate: z.number().optional().catch(undefined),
});

/** The rules that tie an output's fields together and to its format (decisions A2, last column). */
function outputFaults(output: unknown): OutputFault[] {
  const read = Readable.safeParse(output);
  if (!read.success) {
    return [];
  }
  const { format: name, bitrate, start = 0, end, channels, channel, sampleRate } = read.data;
  const { timeline = name === 'voice' ? 'audio' : 'source', trimSilence } = read.data;
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
  if (channel !== undefined && channels === 2) {
    faults.push({ field: 'channels', message: 'must be 1 together with channel, which is mono' });
  }
  if (trimSilence === true && timeline !== 'audio') {
    faults.push({
      field: 'trimSilence',
      message: 'needs timeline: audio, because it changes the clock',
    });
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
