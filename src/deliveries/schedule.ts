/** When the next try of a delivery comes. */
import { retryDelayMs } from '../queue/announcement-tries.ts';

/**
 * @param fromMs when the event happened, or its replay was asked for
 * @param tries those that have ended
 * @param retryAfterSeconds what the receiver asked for, 0 where it did not
 * @returns ms until the next try; undefined when there is none
 */
export type Schedule = (fromMs: number, tries: number, retryAfterSeconds: number) => number | undefined;

/** As many tries as entries, each so many seconds after the event; a receiver may ask for more patience. */
export function scheduled(seconds: readonly number[]): Schedule {
  return (fromMs, tries, retryAfterSeconds) =>
    tries < seconds.length ? retryDelayMs(seconds, fromMs, tries, retryAfterSeconds) : undefined;
}

/** Up to this part of a delay is added to it at random. */
const JITTER = 0.25;

/** Twice the distance each time, up to the longest one, until the event is so old. */
export function doubling(options: {
  readonly firstMs: number;
  readonly longestMs: number;
  readonly giveUpAfterMs: number;
}): Schedule {
  const { firstMs, longestMs, giveUpAfterMs } = options;
  return (fromMs, tries) =>
    Date.now() - fromMs > giveUpAfterMs
      ? undefined
      : Math.round(
          Math.min(firstMs * 2 ** Math.min(tries - 1, 30), longestMs) * (1 + Math.random() * JITTER),
        );
}
