/** Converts `extract` options to the contract's; errors name the option. */
import { DestinationRequest } from 'soundpost-contract/destination';
import { type FormatName, formats } from 'soundpost-contract/formats';
import { ONLY_OUTPUT } from 'soundpost-contract/ids';
import { JobOptions, VoiceMessageRequest } from 'soundpost-contract/job-request';
import {
  type AskedOutputs,
  LoneOutputRequest,
  OutputsRequest,
  type TimelineChoice,
} from 'soundpost-contract/output-request';
import { UsageError } from './ending.ts';
import { subtitlesOf, TRANSCRIPT_NAME } from './transcript.ts';

/** As commander passes them. */
interface ExtractChoices {
  readonly format?: FormatName | 'probe';
  readonly quality?: string;
  readonly bitrate?: string;
  /** False with `--no-copy`. */
  readonly copy: boolean;
  readonly normalize?: boolean;
  readonly loudness?: string;
  readonly track?: string;
  readonly start?: string;
  readonly end?: string;
  readonly timeline?: TimelineChoice;
  readonly trimSilence?: boolean;
  readonly acceptTruncated?: boolean;
  readonly channels?: string;
  readonly channel?: string;
  readonly sampleRate?: string;
  /** False with `--no-metadata`. */
  readonly metadata: boolean;
  /** Each `Name: value`. */
  readonly header?: readonly string[];
  /** Once for each additional output. */
  readonly also?: readonly string[];
  readonly transcript?: string;
  readonly language?: string;
  readonly output?: string;
  readonly force?: boolean;
  readonly name?: string;
  readonly send?: string;
  readonly delay?: string;
  readonly webhook?: string;
  readonly destination?: string;
  readonly priority?: string;
  readonly server?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

/** The outputs with `--also`, else the output. */
interface ExtractRequest extends AskedOutputs {
  readonly destination?: DestinationRequest;
  readonly options: JobOptions;
}

const DEFAULT_FORMAT: FormatName = 'mp3';

/** Throws a UsageError that lists every fault. */
export function extractRequest(choices: ExtractChoices): ExtractRequest {
  const first = given({
    format: choices.format ?? formatOfName(choices.output) ?? DEFAULT_FORMAT,
    quality: choices.quality,
    bitrate: choices.bitrate,
    copy: choices.copy ? undefined : 'never',
    normalize: choices.normalize,
    loudness: number('--loudness', choices.loudness, 'LUFS, such as -14'),
    track: indexOr(choices.track),
    start: seconds('--start', choices.start),
    end: seconds('--end', choices.end),
    timeline: choices.timeline ?? (choices.trimSilence ? 'audio' : undefined),
    trimSilence: choices.trimSilence,
    acceptTruncated: choices.acceptTruncated,
    channels: number('--channels', choices.channels, '1 or 2'),
    channel: indexOr(choices.channel),
    sampleRate: number('--sample-rate', choices.sampleRate, 'Hz, such as 44100'),
    preserveMetadata: choices.metadata ? undefined : false,
  });
  if (choices.language !== undefined && choices.transcript === undefined) {
    throw new UsageError('--language: only for a transcript; add --transcript FILE');
  }
  if (choices.format === 'probe') demandNoFile(choices);
  const asked = askedOutputs(first, [
    ...(choices.also?.map(alsoOutput) ?? []),
    ...(choices.transcript === undefined
      ? []
      : [transcriptOutput(first, choices.transcript, choices.language)]),
  ]);
  const options = JobOptions.safeParse(
    given({
      filename: choices.name,
      webhook: choices.webhook,
      priority: choices.priority,
      voiceMessage: choices.send === undefined ? undefined : voiceMessage(choices.send, choices.delay),
    }),
  );
  if (choices.send === undefined && choices.delay !== undefined) {
    throw new UsageError('--delay: only for a voice message; add --send INSTANCE:NUMBER');
  }
  const faults = [...asked.faults, ...(options.error?.issues ?? []).map(faultOf)];
  if (!options.success || faults.length > 0) throw new UsageError(faults.join('\n  '));
  const destination = destinationOf(choices.destination);
  return { ...asked.outputs, options: options.data, ...(destination && { destination }) };
}

/** A probe makes nothing that these could be about. */
function demandNoFile({ output, send, destination }: ExtractChoices): void {
  for (const [option, value] of Object.entries({
    '-o': output,
    '--send': send,
    '--destination': destination,
  })) {
    if (value !== undefined) {
      throw new UsageError(`${option}: a probe makes no file; it prints what it finds, with --json as JSON`);
    }
  }
}

/** Of the same part and track as the audio. */
function transcriptOutput(
  { track, start, end }: Readonly<Record<string, unknown>>,
  path: string,
  language: string | undefined,
): Record<string, unknown> {
  const what = { name: TRANSCRIPT_NAME, format: 'transcript', subtitles: subtitlesOf(path) };
  return given({ ...what, track, start, end, language });
}

type Issue = Readonly<{ path: readonly PropertyKey[]; message: string; keys?: readonly string[] }>;

/** @param first without a name: its options are not prefixed */
function askedOutputs(
  first: Readonly<Record<string, unknown>>,
  others: readonly Readonly<Record<string, unknown>>[],
): { outputs: AskedOutputs; faults: string[] } {
  if (others.length === 0) {
    const output = LoneOutputRequest.safeParse(first);
    return { outputs: { output: output.data }, faults: (output.error?.issues ?? []).map(faultOf) };
  }
  const outputs = OutputsRequest.safeParse([{ name: ONLY_OUTPUT, ...first }, ...others]);
  const faults = (outputs.error?.issues ?? []).map(({ path: [index = 0, ...path], message }) => {
    if (index === 0 && path.length > 0) return faultOf({ path, message });
    const { name, format } = others[Number(index) - 1] ?? {};
    if (format === 'transcript')
      return path[0] === 'language' ? faultOf({ path, message }) : `--transcript: ${message}`;
    const where = [name, ...path]
      .filter((part) => part !== undefined)
      .map(String)
      .join(' ');
    return `--also${where === '' ? '' : ` ${where}`}: ${message}`;
  });
  return { outputs: { outputs: outputs.data }, faults };
}

function faultOf({ path, message, keys }: Issue): string {
  // Only a probe takes fewer fields than there are options.
  if (keys !== undefined) return `${keys.map(optionOf).join(', ')}: not for a probe, which makes no file`;
  return `${optionOf(String(path[0]))}: ${message}`;
}

/** The service checks the address. */
function destinationOf(url: string | undefined): DestinationRequest | undefined {
  if (url === undefined) return undefined;
  const { data, error } = DestinationRequest.safeParse({ url });
  if (error) throw new UsageError(`--destination: ${error.issues[0]?.message}`);
  return data;
}

/** `INSTANCE:NUMBER` */
function voiceMessage(send: string, delay: string | undefined): VoiceMessageRequest {
  const [, instance, recipient] = /^([^:]+):(.+)$/s.exec(send) ?? [];
  if (instance === undefined || recipient === undefined) {
    throw new UsageError(
      `--send: "${send}" is not INSTANCE:NUMBER, such as support:+12025550123 (a number with its country code, or a JID)`,
    );
  }
  const parsed = VoiceMessageRequest.safeParse(
    given({ instance, number: recipient, delay: number('--delay', delay, 'milliseconds, such as 1200') }),
  );
  if (!parsed.success) {
    throw new UsageError(
      parsed.error.issues
        .map(
          ({ path, message }) =>
            `${path[0] === 'delay' ? '--delay' : `--send: ${String(path[0])}`} ${message}`,
        )
        .join('\n  '),
    );
  }
  return parsed.data;
}

const optionNames: Readonly<Record<string, string>> = {
  copy: '--no-copy',
  sampleRate: '--sample-rate',
  trimSilence: '--trim-silence',
  acceptTruncated: '--accept-truncated',
  preserveMetadata: '--no-metadata',
  filename: '--name',
};

function optionOf(field: string): string {
  return optionNames[field] ?? `--${field}`;
}

/** By the extension of `-o`, like ffmpeg: `.ogg` is Vorbis. */
function formatOfName(output: string | undefined): FormatName | undefined {
  const extension = /\.([^./\\]+)$/.exec(output ?? '')?.[1]?.toLowerCase();
  return (Object.keys(formats) as FormatName[]).find((name) => formats[name].extension === extension);
}

function number(option: string, text: string | undefined, form: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) {
    throw new UsageError(`${option}: "${text}" is not a number; use ${form}`);
  }
  return value;
}

function indexOr(text: string | undefined): string | number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : text;
}

/** `70`, `70.5`, `1:10`, `0:01:10.5` */
function seconds(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^(\d+:){0,2}\d+(\.\d+)?$/.test(text)) {
    throw new UsageError(`${option}: "${text}" is not a time; write 70, 70.5, 1:10 or 0:01:10`);
  }
  return text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
}

/** An undefined field would count as given. */
function given(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

// `--also NAME=FORMAT[,FIELD=VALUE…]`: another output of the video, with the API's field names.

const FORM = 'NAME=FORMAT[,FIELD=VALUE…], such as preview=opus,end=30 or peaks=waveform,pixelsPerSecond=10';

/** The fields as in a request; the contract validates them. Throws a UsageError. */
function alsoOutput(text: string): Record<string, unknown> {
  const [first = '', ...others] = text.split(',');
  const [name, format] = pairOf(first, text);
  if (format === 'transcript') {
    throw new UsageError('--also: for a transcript use --transcript talk.vtt');
  }
  const fields = others.map((other): [string, unknown] => {
    const [field, value] = pairOf(other, text);
    if (field === 'name' || field === 'format') {
      throw new UsageError(`--also: "${text}" sets ${field} twice; ${FORM}`);
    }
    return [field, readValue(value)];
  });
  return { name, format, ...Object.fromEntries(fields) };
}

function pairOf(part: string, text: string): [string, string] {
  const [, left, right] = /^([^=]+)=(.+)$/s.exec(part) ?? [];
  if (left === undefined || right === undefined) {
    throw new UsageError(`--also: "${text}" is not ${FORM}`);
  }
  return [left, right];
}

function readValue(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}
