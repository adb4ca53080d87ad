/** When the next try of a delivery comes. */
import { retryDelayMs } from '../jobs/announcement-tries.ts';

/**
 * @param tries those that have ended, 1 or more
 * @param retryAfterSeconds what the receiver asked for, 0 where it did not
 * @returns ms from the end of the last try to the next; undefined when there is none
 */
export type Schedule = (tries: number, retryAfterSeconds: number) => number | undefined;

/** As many tries as entries, at the distances between them, seconds; a receiver may ask for more patience. */
export function scheduled(seconds: readonly number[]): Schedule {
  return (tries, retryAfterSeconds) =>
    tries < seconds.length ? retryDelayMs(seconds, tries, retryAfterSeconds) : undefined;
}

/** Up to this part of a delay is added to it at random. */
const JITTER = 0.25;

/** Twice the distance each time, up to the longest one. */
export function doubling(options: {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly tries: number;
}): Schedule {
  const { firstMs, longestMs, tries: most } = options;
  return (tries) =>
    tries >= most
      ? undefined
      : Math.round(
          Math.min(firstMs * 2 ** Math.min(tries - 1, 30), longestMs) * (1 + Math.random() * JITTER),
        );
}
