/** How long jobs take here, measured: a moving mean that every ended job moves, for estimates. */

import type { Redis } from '../redis/connection.ts';
import { ownKey } from '../redis/keys.ts';
import { RedisScript } from '../redis/script.ts';

export const MEAN_JOB_SECONDS_KEY = ownKey('mean-job-seconds');
/** Part of the mean that one job replaces. */
const WEIGHT = 0.1;

const move = new RedisScript(`
local mean = redis.call('GET', KEYS[1])
local seconds, weight = tonumber(ARGV[1]), tonumber(ARGV[2])
if mean then seconds = tonumber(mean) * (1 - weight) + seconds * weight end
redis.call('SET', KEYS[1], tostring(seconds))
`);

export async function noteJobSeconds(redis: Redis, seconds: number): Promise<void> {
  await move.run(redis, [MEAN_JOB_SECONDS_KEY], [seconds, WEIGHT]);
}

/** Undefined before the first job has ended. */
export async function meanJobSeconds(redis: Redis): Promise<number | undefined> {
  const mean = await redis.get(MEAN_JOB_SECONDS_KEY);
  return mean === null ? undefined : Number(mean);
}
