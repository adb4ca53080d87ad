/** What a probe found, for people and as JSON. */
import type { InputFile, Job } from 'soundpost-contract/job';
import { fields, table } from './terminal-text.ts';

/** The output of `extract --format probe --json`. */
export interface ProbeAnswer extends Pick<Job, 'warnings'> {
  /** Only by a service. */
  readonly jobId?: string;
  readonly inputFile: InputFile;
}

export function probeText({ inputFile, warnings }: ProbeAnswer): string {
  const { name, format, duration, size, tracks } = inputFile;
  const about = fields([
    ['video', name],
    ['container', format],
    ['length', duration === null ? undefined : `${duration.toFixed(2)} s`],
    ['size', size === null ? undefined : `${size} bytes`],
    ...warnings.map(({ code, message }): [string, string] => ['warning', `${code}: ${message}`]),
  ]);
  const rows = tracks.map((track) => [
    String(track.index),
    track.codec,
    track.language ?? '',
    track.layout ?? `${track.channels} channels`,
    `${track.sampleRate} Hz`,
    [track.default ? 'default' : '', track.encrypted ? 'encrypted' : track.decodable ? '' : 'not supported']
      .filter(Boolean)
      .join(', '),
  ]);
  return `${about}\n\n${table(['TRACK', 'CODEC', 'LANGUAGE', 'CHANNELS', 'RATE', 'NOTE'], rows)}`;
}
