/** When the next try of a follow-up comes. */

/**
 * @param tries those that have ended, 1 or more
 * @param retryAfterSeconds what the receiver asked for, 0 where it did not
 * @returns ms from the end of the last try to the next; undefined when there is none
 */
export type Schedule = (tries: number, retryAfterSeconds: number) => number | undefined;

/**
 * Ten tries over an hour (decisions C), seconds after the first. The second comes when the lease of
 * a gateway that died has run out (6 s, packages/kit/src/http/idempotency.ts): earlier it would
 * hear that the first one is still running.
 */
export const VOICE_SCHEDULE_SECONDS = [0, 8, 20, 60, 180, 420, 900, 1500, 2400, 3600] as const;
/** Three tries, as of a download: seconds after the first. */
export const PUT_SCHEDULE_SECONDS = [0, 1, 3] as const;

const LONGEST_RETRY_AFTER_SECONDS = 60 * 60;
/** Up to this part of a delay is added, so that not everybody meets a receiver that comes back. */
const JITTER = 0.1;
const DOUBLING_JITTER = 0.25;

/**
 * As many tries as entries, seconds, at the distances between them: counted from the event, an
 * outage of ours would use up all tries at once. A receiver may ask for more patience.
 */
export function scheduled(seconds: readonly number[]): Schedule {
  return (tries, retryAfterSeconds) =>
    tries < seconds.length ? retryDelayMs(seconds, tries, retryAfterSeconds) : undefined;
}

function retryDelayMs(scheduleSeconds: readonly number[], tries: number, retryAfterSeconds: number): number {
  const distance = (scheduleSeconds[tries] ?? 0) - (scheduleSeconds[tries - 1] ?? 0);
  const seconds = Math.max(distance, Math.min(retryAfterSeconds, LONGEST_RETRY_AFTER_SECONDS));
  return Math.round(seconds * 1000 * (1 + Math.random() * JITTER));
}

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
          Math.min(firstMs * 2 ** Math.min(tries - 1, 30), longestMs) * (1 + Math.random() * DOUBLING_JITTER),
        );
}
