/** What can be said of how long a job will take: what jobs took here, measured, and how many have their turn before it. */
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { QUEUE_PLACES_KEYS } from './bullmq-internals.ts';

export interface Outlook {
  /** Of a job, from when a worker takes it up to its end, without waiting for an encoder; undefined before the first one has ended. */
  readonly meanSeconds: number | undefined;
  /** The part of it during which the job has an encoder. */
  readonly meanEncodingSeconds: number | undefined;
  /** Jobs that have their turn before this one: they wait for a worker, or have been taken up. */
  readonly inFront: number;
  /** All that workers have taken up. */
  readonly running: number;
}

const MEANS = [ownKey('mean-job-seconds'), ownKey('mean-encoding-seconds')];
/** The first keys of a script that includes lua/outlook.lua. */
export const OUTLOOK_KEYS = [...QUEUE_PLACES_KEYS, ...MEANS];

/** What `outlook` in lua/outlook.lua returns. */
export type OutlookAnswer = readonly [mean: string, encoding: string, inFront: number, running: number];

export function readOutlook([mean, encoding, inFront, running]: OutlookAnswer): Outlook {
  const seconds = (text: string): number | undefined => (text === '' ? undefined : Number(text));
  return { meanSeconds: seconds(mean), meanEncodingSeconds: seconds(encoding), inFront, running };
}

const look = loadScript(new URL('./lua/outlook-read.lua', import.meta.url));

/** Of a job that waits or runs. */
export async function outlookOf(redis: Redis, jobId: string): Promise<Outlook> {
  return readOutlook((await look.run(redis, OUTLOOK_KEYS, [jobId])) as unknown as OutlookAnswer);
}

const move = loadScript(new URL('./lua/mean-seconds-update.lua', import.meta.url));

/** What a job took, seconds. */
export interface JobSeconds {
  /** Until its source was there. */
  readonly fetching: number;
  /** From when it had an encoder to its end. */
  readonly encoding: number;
}

/** Every job that ends well moves the means. */
export async function noteJobSeconds(redis: Redis, { fetching, encoding }: JobSeconds): Promise<void> {
  await move.run(redis, MEANS, [fetching + encoding, encoding]);
}
