/** Estimates a job's duration from measured means and from how many jobs are ahead of it. */
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { QUEUE_PLACES_KEYS } from './bullmq-internals.ts';

export interface Outlook {
  /** From its start to its end, without waiting for an encoder; undefined before the first end. */
  readonly meanSeconds: number | undefined;
  /** The part with an encoder. */
  readonly meanEncodingSeconds: number | undefined;
  /** Jobs served before this one, waiting or running. */
  readonly inFront: number;
  /** All running jobs. */
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

/** Of a waiting or running job. */
export async function outlookOf(redis: Redis, jobId: string): Promise<Outlook> {
  return readOutlook((await look.run(redis, OUTLOOK_KEYS, [jobId])) as unknown as OutlookAnswer);
}

const move = loadScript(new URL('./lua/mean-seconds-update.lua', import.meta.url));

/** A job's durations, seconds. */
export interface JobSeconds {
  /** Until its source was fetched. */
  readonly fetching: number;
  /** From getting an encoder to its end. */
  readonly encoding: number;
}

/** Every successful job moves the means. */
export async function noteJobSeconds(redis: Redis, { fetching, encoding }: JobSeconds): Promise<void> {
  await move.run(redis, MEANS, [fetching + encoding, encoding]);
}
