/** What can be said of how long a job will take: what jobs took here, measured, and how many have their turn before it. */
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { RedisScript } from 'soundpost-kit/redis/script';
import { QUEUE_PLACES, QUEUE_PLACES_KEYS } from './bullmq-internals.ts';

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

/** Part of the mean that one job replaces. */
const WEIGHT = 0.1;

/** Both means, and the keys that {@link OUTLOOK} needs behind {@link QUEUE_PLACES_KEYS}. */
const MEANS = [ownKey('mean-job-seconds'), ownKey('mean-encoding-seconds')];
export const OUTLOOK_KEYS = [...QUEUE_PLACES_KEYS, ...MEANS];

/** Lua, behind {@link QUEUE_PLACES}: `outlook(priority, id)`, to be read by {@link readOutlook}; `id` is nil for a job that is about to be added. */
export const OUTLOOK = `
local function outlook(priority, id)
  local waiting, running = before(priority, id)
  local _, _, all = lengths()
  local job, encoding = unpack(redis.call('MGET', KEYS[${QUEUE_PLACES_KEYS.length + 1}], KEYS[${QUEUE_PLACES_KEYS.length + 2}]))
  return {job or '', encoding or '', waiting + running, all}
end
`;

export type OutlookAnswer = readonly [mean: string, encoding: string, inFront: number, running: number];

export function readOutlook([mean, encoding, inFront, running]: OutlookAnswer): Outlook {
  const seconds = (text: string): number | undefined => (text === '' ? undefined : Number(text));
  return { meanSeconds: seconds(mean), meanEncodingSeconds: seconds(encoding), inFront, running };
}

const look = new RedisScript(`
${QUEUE_PLACES}
${OUTLOOK}
return outlook(priorityOf(ARGV[1]), ARGV[1])
`);

/** Of a job that waits or runs. */
export async function outlookOf(redis: Redis, jobId: string): Promise<Outlook> {
  return readOutlook((await look.run(redis, OUTLOOK_KEYS, [jobId])) as unknown as OutlookAnswer);
}

const move = new RedisScript(`
for i = 1, 2 do
  local mean, seconds = redis.call('GET', KEYS[i]), tonumber(ARGV[i])
  if mean then seconds = tonumber(mean) * ${1 - WEIGHT} + seconds * ${WEIGHT} end
  redis.call('SET', KEYS[i], tostring(seconds))
end
`);

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
