/** What the API says in words of its own, in words for people. */
import type { DestinationState } from 'soundpost-contract/destination';
import { errorCatalogue } from 'soundpost-contract/errors';
import type { Job, ProcessingStep, Track, VoiceMessageState } from 'soundpost-contract/job';

/** A cancelled job is a failed one to the API, but not to who has cancelled it. */
export type ShownStatus = Job['status'] | 'cancelled';

const statuses: Readonly<Record<ShownStatus, string>> = {
  queued: 'Queued',
  processing: 'Processing',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
};
const steps: Readonly<Record<ProcessingStep, string>> = {
  downloading_video: 'Downloading',
  analyzing_video: 'Analyzing',
  extracting_audio: 'Extracting audio',
  normalizing_audio: 'Normalizing loudness',
  finalizing: 'Finishing',
};
const voiceStatuses: Readonly<Record<string, string>> = {
  pending: 'Pending',
  sending: 'Sending',
  sent: 'Sent',
  failed: 'Failed',
  unknown: 'Unknown',
};
const messageStatuses: Readonly<Record<string, string>> = {
  DELIVERY_ACK: 'Delivered',
  READ: 'Read',
  PLAYED: 'Played',
  ERROR: 'Undelivered',
};
const destinationStatuses: Readonly<Record<string, string>> = {
  pending: 'Pending',
  completed: 'Delivered',
  failed: 'Failed',
};

export function statusOf(job: Job): ShownStatus {
  return job.error?.code === 'JOB_CANCELLED' ? 'cancelled' : job.status;
}

export const statusWord = (status: ShownStatus): string => statuses[status];
export const stepWord = (step: ProcessingStep | null): string => (step === null ? '' : steps[step]);
export const isUnfinished = ({ status }: Job): boolean => status === 'queued' || status === 'processing';

export function voiceWord({ status, messageStatus }: VoiceMessageState): string {
  const isSent = status === 'sent' || messageStatus === 'ERROR';
  const told = isSent ? messageStatuses[messageStatus ?? ''] : undefined;
  return told ?? voiceStatuses[status] ?? status;
}

/** `Delivered · https://bucket.example/talk.mp3`, or why not. */
export const destinationWord = ({ url, status, error }: DestinationState): string =>
  [destinationStatuses[status] ?? status, error?.message ?? url].join(' · ');

export type Output = NonNullable<Job['outputs']>[number];

export const isProbe = ({ output }: Pick<Job, 'output'>): boolean => output?.format === 'probe';

/** What a job makes, in order: it was asked for one output or for several. A probe is shown as one. */
export const outputsOf = ({ output, outputs }: Pick<Job, 'output' | 'outputs'>): Output[] =>
  outputs ?? [output as Output];

/** `1 job`, `2,000 jobs` */
export const counted = (count: number, what = 'job', many = `${what}s`): string =>
  `${count.toLocaleString()} ${count === 1 ? what : many}`;

/** `spa` → `Spanish`; undefined where nothing names it. @param language ISO 639 */
export function languageWord(language: string | null): string | undefined {
  if (language === null || language === 'und') return undefined;
  try {
    return new Intl.DisplayNames('en', { type: 'language' }).of(language);
  } catch {
    return language;
  }
}

/** `aac, stereo, 48 kHz`, and why it cannot be taken. */
export function trackWord({ codec, channels, sampleRate, decodable, encrypted }: Track): string {
  const fault = encrypted ? 'encrypted' : decodable ? '' : 'unsupported';
  return [codec, channelWord(channels).toLowerCase(), `${sampleRate / 1000} kHz`, fault]
    .filter(Boolean)
    .join(', ');
}

export const channelWord = (channels: number): string =>
  ({ 1: 'Mono', 2: 'Stereo' })[channels] ?? `${channels} channels`;

/** What the job is about: the chosen name, the file, or the end of the address. */
export function nameOf(job: Job): string {
  const address = job.source.url?.split('/').filter(Boolean).at(-1);
  return (
    job.outputFile?.filename ??
    job.options.filename ??
    job.inputFile?.name ??
    job.source.name ??
    address ??
    job.jobId
  );
}

/** Whether the same job may succeed now: what lies in an upload, or in what was chosen, fails again. At an address there may be another file by now. */
export function mayHelpToRetry({ error, source }: Job): boolean {
  if (error === undefined) return false;
  if (error.code === 'JOB_CANCELLED' || (error.code === 'INVALID_VIDEO' && source.type === 'url'))
    return true;
  return (
    !Object.hasOwn(errorCatalogue, error.code) ||
    errorCatalogue[error.code as keyof typeof errorCatalogue].retryable
  );
}

/** 1536 → `1.5 KB`, in powers of 1000 */
export function size(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power === 0 || value >= 100 ? 0 : 1)} ${units[power]}`;
}

/** 75.25 → `1:15.3`; an hour has its own place */
export function time(seconds: number): string {
  const tenths = Math.round(seconds * 10);
  const whole = Math.floor(tenths / 10);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = String(whole % 60).padStart(2, '0');
  const fraction = tenths % 10 === 0 ? '' : `.${tenths % 10}`;
  return `${hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}` : minutes}:${rest}${fraction}`;
}

/** `75`, `1:15` or `1:02:03.5` as seconds; undefined for an empty text, NaN for what is no time. */
export function parseTime(text: string): number | undefined {
  const trimmed = text.trim().replace(',', '.');
  if (trimmed === '') return undefined;
  if (!/^(\d+:){0,2}\d+(\.\d+)?$/.test(trimmed)) return Number.NaN;
  return trimmed.split(':').reduce((total, part) => total * 60 + Number(part), 0);
}

/** 130 → `about 2 min` */
export function about(seconds: number): string {
  if (seconds < 60) return `about ${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `about ${Math.round(seconds / 60)} min` : `about ${Math.round(seconds / 3600)} h`;
}

/** How long until a time. @param iso ISO 8601 */
export function until(iso: string): string {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  return seconds <= 0 ? 'expired' : about(seconds).replace('about', 'expires in about');
}
