/** Keys that one of their limits holds back, for logs and metrics (decisions A6). */
import type { Logger } from 'soundpost-base/logger';
import type { KeyLimit, Observer } from './metrics/observer.ts';

/** A client that does not wait when it is told to would fill the log. */
const LOG_AGAIN_AFTER_MS = 60_000;

/** Counts each time, and logs once a minute for each key and limit. */
export function heldKeys(logger: Logger, observer: Pick<Observer, 'keyHeld'>) {
  const loggedAtMs = new Map<string, number>();
  return (key: string, limit: KeyLimit, about: Readonly<Record<string, unknown>> = {}): void => {
    observer.keyHeld(key, limit);
    const nowMs = performance.now();
    const held = `${key} ${limit}`;
    if (nowMs - (loggedAtMs.get(held) ?? Number.NEGATIVE_INFINITY) < LOG_AGAIN_AFTER_MS) return;
    loggedAtMs.set(held, nowMs);
    logger.warn({ key, limit, ...about }, 'a key is held back by its limit');
  };
}
