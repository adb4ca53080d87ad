/** Waiting for a condition: the one place where tests ask again and again, with an end. */
import { setTimeout as delay } from 'node:timers/promises';

/**
 * What comes soon is noticed soon. Each question costs time of the processor, of which what is
 * waited for has the less: the longer it takes, the less is asked.
 */
const FIRST_POLL_MS = 10;
const LAST_POLL_MS = 250;
const OF_WAITED = 1 / 4;

type Truthy<T> = Exclude<T, false | null | undefined>;

/**
 * Asks until the answer is neither false nor missing, and gives it back.
 * @throws Error that says what was waited for, when it has not come within `timeoutMs`
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  timeoutMs = 60_000,
): Promise<Truthy<T>> {
  const start = Date.now();
  for (;;) {
    const answer = await ask();
    if (answer !== false && answer !== undefined && answer !== null) {
      return answer as Truthy<T>;
    }
    const waitedMs = Date.now() - start;
    if (waitedMs > timeoutMs) {
      throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    }
    await delay(Math.min(LAST_POLL_MS, Math.max(FIRST_POLL_MS, waitedMs * OF_WAITED)));
  }
}
