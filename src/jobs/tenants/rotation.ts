/** Replaces a secret in a Redis hash; the old one works for 24 more hours (decisions A6, D). */
import { ServiceError } from 'soundpost-contract/errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';

const OVERLAP_MS = 24 * 60 * 60 * 1000;
/** Replaced secrets that can work at the same time. */
const MAX_REPLACED = 5;

const rotate = loadScript(new URL('./lua/secret-rotate.lua', import.meta.url));
const undo = loadScript(new URL('./lua/secret-rotate-undo.lua', import.meta.url));

/**
 * @param currentField the hash's field with the current secret
 * @throws ServiceError RATE_LIMITED while five replaced secrets still work
 */
export async function rotateSecret(
  redis: Redis,
  key: string,
  currentField: string,
  secret: string,
): Promise<void> {
  const now = redisNow();
  const args = [currentField, secret, now, now + OVERLAP_MS, MAX_REPLACED];
  const rotating = rotate.run(redis, [key], args).catch((error: unknown) => {
    // Redis may only be late, and nobody knows the new secret.
    undo.run(redis, [key], [currentField, secret]).catch(() => undefined);
    throw error;
  });
  const waitMs = Number(await rotating);
  if (waitMs > 0) {
    throw new ServiceError(
      'RATE_LIMITED',
      `the secret was replaced ${MAX_REPLACED} times within 24 hours; wait until the oldest of them has ended`,
      { retryAfterSeconds: waitMs / 1000 },
    );
  }
}

/** Entries of the field `replaced` that still work, newest first. */
export const stillWorking = (replaced: string | undefined): string[] =>
  working(replaced).map(({ secret }) => secret);

/** Until when the newest of them works, ms; undefined if none does. */
export const worksUntilMs = (replaced: string | undefined): number | undefined =>
  working(replaced)[0]?.untilMs;

function working(replaced: string | undefined) {
  return (replaced ?? '').split(' ').flatMap((entry) => {
    const [secret, until] = entry.split(':');
    const untilMs = Number(until);
    return secret && untilMs > redisNow() ? [{ secret, untilMs }] : [];
  });
}
