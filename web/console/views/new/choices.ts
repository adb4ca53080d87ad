/** What is to be made of the sources, as it stands in the fields, and as the API wants it. */

import { formats } from 'soundpost-contract/formats';
import type { Job } from 'soundpost-contract/job';
import type { JobRequest } from 'soundpost-contract/job-request';
import type { z } from 'zod';
import { type Output, outputsOf, time } from '../../words.ts';
import { createStore } from './store.ts';

export type FormatName = keyof typeof formats;
type WantedJob = z.input<typeof JobRequest>;
/** A job but for its source. */
export type Wanted = Omit<WantedJob, 'source'>;

/** Texts are as they were typed; an empty one leaves it to the service. */
export interface Choices {
  readonly format: FormatName;
  readonly quality: string;
  readonly normalize: boolean;
  readonly loudness: string;
  readonly track: string;
  readonly channel: string;
  readonly also: string;
  readonly subtitles: string;
  readonly waveform: boolean;
  readonly filename: string;
  readonly destination: string;
  readonly webhook: string;
  readonly start: string;
  readonly end: string;
}

export interface Part {
  readonly start?: number;
  readonly end?: number;
}

const INITIAL: Choices = {
  format: 'mp3',
  quality: '',
  normalize: false,
  loudness: '-16',
  track: '',
  channel: '',
  also: '',
  subtitles: '',
  waveform: false,
  filename: '',
  destination: '',
  webhook: '',
  start: '',
  end: '',
};

export const choices = createStore(INITIAL);

export const choose = (part: Partial<Choices>): void => choices.set((chosen) => ({ ...chosen, ...part }));

/** After a job has begun: what is made stays chosen for the next one, its name and addresses do not. */
export const keepOutputs = (): void =>
  choose({ filename: '', destination: '', webhook: '', start: '', end: '' });

export const forgetChoices = (): void => choices.set(() => INITIAL);

/** Those of an earlier job, without its destination, whose address is for once. Of further outputs of sound the first is shown. */
export function chooseAsOf(job: Job): void {
  const [output, ...others] = outputsOf(job);
  if (output === undefined) return;
  choices.set(() => ({ ...INITIAL, ...ofOutput(output), ...ofOthers(others), ...ofOptions(job.options) }));
}

function ofOutput(output: Output): Partial<Choices> {
  const { start, end, track } = output;
  const sound = isSound(output) ? output : undefined;
  return {
    format: sound?.format ?? 'mp3',
    quality: sound?.quality ?? '',
    normalize: sound?.normalize === true || sound?.loudness !== undefined,
    loudness: String(sound?.loudness ?? INITIAL.loudness),
    track: track === undefined ? '' : String(track),
    channel: String(sound?.channel ?? ''),
    start: start === undefined ? '' : time(start),
    end: end === undefined ? '' : time(end),
  };
}

function ofOthers(others: readonly Output[]): Partial<Choices> {
  const transcript = others.find(({ format }) => format === 'transcript');
  const subtitles = transcript !== undefined && 'subtitles' in transcript ? transcript.subtitles : undefined;
  return {
    also: others.find(isSound)?.format ?? '',
    subtitles: transcript === undefined ? '' : (subtitles ?? 'vtt'),
    waveform: others.some(({ format }) => format === 'waveform'),
  };
}

const ofOptions = ({ filename = '', webhook = '' }: Job['options']): Partial<Choices> => ({
  filename,
  webhook,
});

const isSound = (output: Output): output is Extract<Output, { format: FormatName }> =>
  Object.hasOwn(formats, output.format);

/**
 * What is asked for of each source, without what was left to the service.
 * @param part of the only source
 * @param isForOne of several sources none has a file name or a destination: they would all have the same
 */
export function wantedOf(chosen: Choices, part: Part, isForOne: boolean): Wanted {
  const { format, also, subtitles, waveform } = chosen;
  const cut = { track: indexOr(chosen.track.trim()), ...part };
  const level = chosen.normalize ? { normalize: true, loudness: Number(chosen.loudness) } : {};
  const sound = { ...level, channel: indexOr(chosen.channel.trim()), ...cut };
  const output = { format, quality: text(chosen.quality), ...sound };
  const others = [
    ...(also === '' ? [] : [{ name: `also-${also}`, format: also, ...sound }]),
    ...(waveform ? [{ name: 'waveform', format: 'waveform', ...cut }] : []),
    ...(subtitles === '' ? [] : [{ name: 'transcript', format: 'transcript', subtitles, ...cut }]),
  ];
  const destination = isForOne ? text(chosen.destination) : undefined;
  const wanted = {
    ...(others.length === 0 ? { output } : { outputs: [{ name: 'audio', ...output }, ...others] }),
    ...(destination === undefined ? {} : { destination: { url: destination } }),
    options: { filename: isForOne ? text(chosen.filename) : undefined, webhook: text(chosen.webhook) },
  };
  // Typed in fields, so what is wrong with it is the service's to say. What is undefined is left out.
  return JSON.parse(JSON.stringify(wanted)) as Wanted;
}

const text = (typed: string): string | undefined => typed.trim() || undefined;

function indexOr(typed: string): string | number | undefined {
  return /^\d+$/.test(typed) ? Number(typed) : text(typed);
}
