/** Replacing a secret in a Redis hash. Each one that was replaced works on until the end of its own 24 hours (decisions A6, D). */
import { ServiceError } from 'soundpost-contract/errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { loadScript } from 'soundpost-kit/redis/script';

const OVERLAP_MS = 24 * 60 * 60 * 1000;
/** Replaced secrets that work at the same time. */
const MAX_REPLACED = 5;

const rotate = loadScript(new URL('./lua/secret-rotate.lua', import.meta.url));

/**
 * @param currentField name of the hash's field that holds the current secret
 * @throws ServiceError RATE_LIMITED when five replaced secrets still work
 */
export async function rotateSecret(
  redis: Redis,
  key: string,
  currentField: string,
  secret: string,
): Promise<void> {
  const now = redisNow();
  const args = [currentField, secret, now, now + OVERLAP_MS, MAX_REPLACED];
  const waitMs = Number(await rotate.run(redis, [key], args));
  if (waitMs > 0) {
    throw new ServiceError(
      'RATE_LIMITED',
      `the secret was replaced ${MAX_REPLACED} times within 24 hours; wait until the oldest of them has ended`,
      { retryAfterSeconds: waitMs / 1000 },
    );
  }
}

/** Those of the field `replaced` that still work, the newest first. */
export function stillWorking(replaced: string | undefined): string[] {
  return (replaced ?? '').split(' ').flatMap((entry) => {
    const [secret, untilMs] = entry.split(':');
    return secret && Number(untilMs) > redisNow() ? [secret] : [];
  });
}
