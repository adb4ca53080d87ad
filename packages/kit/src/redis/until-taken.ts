/** Writes without a way back: what was answered no longer depends on them. */
import { setTimeout as wait } from 'node:timers/promises';
import { within } from 'soundpost-base/deadline';

const DECIDED_WITHIN_MS = 100;
const AGAIN_MS = 500;
const AT_LAST_MS = 5 * 60 * 1000;

/**
 * Makes a decision by an idempotent write: if Redis is silent, it counts, and is repeated in the
 * background ({@link untilTaken}).
 * @param again the repetition, if it differs
 * @returns `late` resolves with whether Redis has it
 * @throws Redis' refusal: then nothing was decided
 */
export async function decide(
  write: () => Promise<unknown>,
  again: () => Promise<unknown> = write,
): Promise<{ readonly late: Promise<boolean> }> {
  const first = write();
  await within(DECIDED_WITHIN_MS, () => first).catch((error: Error) => {
    if (error.name === 'ReplyError') throw error;
  });
  return { late: untilTaken(again, first) };
}

/**
 * Repeats an idempotent write until Redis has it, for up to 5 min. Never rejects.
 * @param write resolves with false if it has to be repeated
 * @param first a write under way
 * @returns whether Redis has it
 */
export async function untilTaken(
  write: () => Promise<unknown>,
  first: Promise<unknown> = write(),
): Promise<boolean> {
  const untilMs = performance.now() + AT_LAST_MS;
  for (let attempt = first; ; attempt = write()) {
    const isTaken = await attempt.then(
      (taken) => taken !== false,
      () => false,
    );
    if (isTaken || performance.now() > untilMs) return isTaken;
    await wait(AGAIN_MS, undefined, { ref: false });
  }
}
