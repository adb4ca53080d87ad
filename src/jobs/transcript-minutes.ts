/** A key's minutes of transcripts in a day: what a transcriber bills (decisions A6). */

import type { Redis } from 'soundpost-kit/redis/connection';
import { type RateState, takeRate } from 'soundpost-kit/redis/rate';

export const DAY_SECONDS = 24 * 60 * 60;

/**
 * Spends audio on the key's day, which begins with the first; takes all of it or nothing.
 * @param seconds default: only looks
 * @returns its rest, in seconds of audio
 */
export async function spendTranscript(
  redis: Redis,
  tenant: string,
  minutesPerDay: number,
  seconds = 0,
): Promise<RateState & { readonly taken: boolean }> {
  const rate = { limit: minutesPerDay * 60, cost: Math.ceil(seconds), windowSeconds: DAY_SECONDS };
  return takeRate(redis, 'transcripts', tenant, rate);
}
