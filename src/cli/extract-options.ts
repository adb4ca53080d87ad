/** The options of `extract` as the contract has them; what is wrong is told under the option's own name. */
import { type FormatName, formats } from '../contract/formats.ts';
import {
  type JobOptions,
  OutputRequest,
  RequestedOptions,
  VoiceMessageRequest,
} from '../contract/job-request.ts';
import { UsageError } from './ending.ts';

/** As commander hands them over. */
export interface ExtractChoices {
  readonly format?: FormatName;
  readonly quality?: string;
  readonly bitrate?: string;
  /** False with `--no-copy`. */
  readonly copy: boolean;
  readonly normalize?: boolean;
  readonly loudness?: string;
  readonly track?: string;
  readonly start?: string;
  readonly end?: string;
  readonly channels?: string;
  readonly sampleRate?: string;
  /** False with `--no-metadata`. */
  readonly metadata: boolean;
  readonly output?: string;
  readonly force?: boolean;
  readonly name?: string;
  readonly send?: string;
  readonly delay?: string;
  readonly webhook?: string;
  readonly priority?: string;
  readonly server?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export interface ExtractRequest {
  readonly output: OutputRequest;
  readonly options: JobOptions;
}

const DEFAULT_FORMAT: FormatName = 'mp3';

/** Throws a UsageError that lists every fault. */
export function extractRequest(choices: ExtractChoices): ExtractRequest {
  const output = OutputRequest.safeParse(
    given({
      format: choices.format ?? formatOfName(choices.output) ?? DEFAULT_FORMAT,
      quality: choices.quality,
      bitrate: choices.bitrate,
      copy: choices.copy ? undefined : 'never',
      normalize: choices.normalize,
      loudness: number('--loudness', choices.loudness, 'LUFS, such as -14'),
      track:
        choices.track !== undefined && /^\d+$/.test(choices.track) ? Number(choices.track) : choices.track,
      start: seconds('--start', choices.start),
      end: seconds('--end', choices.end),
      channels: number('--channels', choices.channels, '1 or 2'),
      sampleRate: number('--sample-rate', choices.sampleRate, 'Hz, such as 44100'),
      preserveMetadata: choices.metadata ? undefined : false,
    }),
  );
  const options = RequestedOptions.safeParse(
    given({
      filename: choices.name,
      webhook: choices.webhook,
      priority: choices.priority,
      voiceMessage: choices.send === undefined ? undefined : voiceMessage(choices.send, choices.delay),
    }),
  );
  if (choices.send === undefined && choices.delay !== undefined) {
    throw new UsageError('--delay: belongs to a voice message; add --send INSTANCE:NUMBER');
  }
  if (!output.success || !options.success) {
    const issues = [...(output.error?.issues ?? []), ...(options.error?.issues ?? [])];
    throw new UsageError(
      issues.map(({ path, message }) => `${optionOf(String(path[0]))}: ${message}`).join('\n  '),
    );
  }
  return { output: output.data, options: options.data };
}

/** `INSTANCE:NUMBER` */
function voiceMessage(send: string, delay: string | undefined): VoiceMessageRequest {
  const [, instance, recipient] = /^([^:]+):(.+)$/s.exec(send) ?? [];
  if (instance === undefined || recipient === undefined) {
    throw new UsageError(
      `--send: "${send}" is not of the form INSTANCE:NUMBER, such as support:+12025550123 (the number with its country code, or a JID)`,
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
  preserveMetadata: '--no-metadata',
  filename: '--name',
};

function optionOf(field: string): string {
  return optionNames[field] ?? `--${field}`;
}

/** By the extension of `-o`, as ffmpeg does: `.ogg` is Vorbis. */
function formatOfName(output: string | undefined): FormatName | undefined {
  const extension = /\.([^./\\]+)$/.exec(output ?? '')?.[1]?.toLowerCase();
  return (Object.keys(formats) as FormatName[]).find((name) => formats[name].extension === extension);
}

function number(option: string, text: string | undefined, form: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) {
    throw new UsageError(`${option}: "${text}" is no number; it takes ${form}`);
  }
  return value;
}

/** `70`, `70.5`, `1:10`, `0:01:10.5` */
function seconds(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^(\d+:){0,2}\d+(\.\d+)?$/.test(text)) {
    throw new UsageError(
      `${option}: "${text}" is no time; write seconds or hours, minutes and seconds: 70, 70.5, 1:10, 0:01:10`,
    );
  }
  return text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
}

/** A field that is undefined would count as given. */
function given(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
