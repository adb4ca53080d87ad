/** Waiting for a condition: the one place where tests ask again and again, with an end. */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 10;

type Truthy<T> = Exclude<T, false | null | undefined>;

/**
 * Asks until the answer is neither false nor missing, and gives it back.
 * @throws Error that says what was waited for, when it has not come within `timeoutMs`
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  timeoutMs = 20_000,
): Promise<Truthy<T>> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== false && answer !== undefined && answer !== null) {
      return answer as Truthy<T>;
    }
    if (Date.now() > end) {
      throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    }
    await delay(POLL_MS);
  }
}
