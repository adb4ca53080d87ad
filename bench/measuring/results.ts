/** The measured rows as they lie in `bench/results`, one file a script of `bench/`, in the order of docs/performance.md. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { Row } from './comparison.ts';

export const rowScripts = [
  'fetch-over-loopback',
  'long-loopback',
  'fetch-over-link',
  'copy',
  'loudness',
  'parallel-encoding',
  'outputs',
  'throughput',
  'short-jobs',
  'one-request',
  'many-cores',
  'voice-message',
  'transcripts',
  'accept',
  'status',
  'long-queue',
  'kept-jobs',
  'memory',
  'transfers',
  'gateway-sends',
] as const;
export type RowScript = (typeof rowScripts)[number];

const Machine = z.object({
  processor: z.string(),
  cores: z.int(),
  memoryGib: z.number(),
  node: z.string(),
  ffmpeg: z.string(),
  redis: z.string(),
});
export type Machine = z.infer<typeof Machine>;

const Result = z.object({
  measuredOn: z.iso.date(),
  machine: Machine,
  /** What ran on the machine before the first figure was taken: the load average of a minute. */
  loadBefore: z.number(),
  rows: z.array(Row).min(1),
});
export type Result = z.infer<typeof Result>;

export function resultFile(folder: string, script: RowScript): string {
  return join(folder, 'bench', 'results', `${script}.json`);
}

/** What has been measured, in order. */
export function readResults(folder: string): { script: RowScript; result: Result }[] {
  return rowScripts
    .map((script) => ({ script, file: resultFile(folder, script) }))
    .filter(({ file }) => existsSync(file))
    .map(({ script, file }) => ({ script, result: Result.parse(JSON.parse(readFileSync(file, 'utf8'))) }));
}
