/** The moments of a job at which a worker can be made to die, in the order in which a job comes by (preload.ts). */
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from 'soundpost-testing/until';
import type { Stand } from './stand.ts';

export const points = [
  'taken',
  'workspace-made',
  'during-download',
  'downloaded',
  'analyzing',
  'before-encoding',
  'encoding',
  'before-publish',
  'temporary-name',
  'renamed',
  /** Between the file and its rendition for a chat. */
  'before-voice-rendition',
  /** Everything lies in the storage, and nobody was told. */
  'published',
  /** Redis knows that the job is completed, and its worker does not know that Redis does. */
  'completed',
  'before-fan-out',
  /** Between the webhook and the voice message. */
  'between-announcements',
  'after-fan-out',
  'fan-out-recorded',
  'webhook-taken',
  'before-webhook-post',
  'after-webhook-post',
  'before-webhook-recorded',
  'webhook-recorded',
  'voice-taken',
  'before-gateway-call',
  'after-gateway-call',
  'before-voice-update',
  'before-voice-recorded',
  'voice-recorded',
] as const;
export type Point = (typeof points)[number];

/** The next process that comes by this point gets the signal. */
export function arm({ folder }: Stand, point: Point, signal: NodeJS.Signals = 'SIGKILL'): void {
  const path = join(folder, 'kills', point);
  // A process that comes by between the making and the writing of a file would find no signal in it.
  writeFileSync(`${path}.new`, signal);
  renameSync(`${path}.new`, path);
}

/** Resolves once a process has come by the point and got its signal. */
export async function reached({ folder }: Stand, point: Point, timeoutMs = 120_000): Promise<void> {
  const isArmed = (): boolean => existsSync(join(folder, 'kills', point));
  await until(`somebody comes by ${point}`, () => !isArmed(), timeoutMs);
}

/** Every process that comes by this point with this job is killed. Answers a look at how many were. */
export function armForJob({ folder }: Stand, point: Point, jobId: string): string {
  const path = join(folder, 'kills', `${point}@${jobId}`);
  writeFileSync(path, '');
  return path;
}
