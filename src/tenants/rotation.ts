/** Replacing a secret in a Redis hash. Each one that was replaced works on until the end of its own 24 hours (decisions A6, D). */
import { ServiceError } from '../contract/errors.ts';
import { redisNow } from '../redis/clock.ts';
import type { Redis } from '../redis/connection.ts';
import { RedisScript } from '../redis/script.ts';

const OVERLAP_MS = 24 * 60 * 60 * 1000;
/** Replaced secrets that work at the same time. */
const MAX_REPLACED = 5;

/**
 * The one before the current stands in fields of its own, as the first edition wrote it. `replaced` holds those before that, the newest
 * first, each as `<secret>:<until, ms>` and a blank.
 */
const rotate = new RedisScript(`
local currentField, previousField, secret, now, untilMs = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local current, previous, previousUntil, replaced =
  unpack(redis.call('HMGET', KEYS[1], currentField, previousField, 'previousUntilMs', 'replaced'))
local kept = {}
local firstEnd = math.huge
local function keep(old, oldUntil)
  if tonumber(oldUntil) <= now then return end
  kept[#kept + 1] = old .. ':' .. oldUntil
  firstEnd = math.min(firstEnd, tonumber(oldUntil))
end
if previous then keep(previous, previousUntil or '0') end
for old, oldUntil in string.gmatch(replaced or '', '([^: ]+):(%d+)') do keep(old, oldUntil) end
if #kept >= ${MAX_REPLACED} then return firstEnd - now end
if current then
  redis.call('HSET', KEYS[1], previousField, current, 'previousUntilMs', untilMs, 'replaced', table.concat(kept, ' '))
end
redis.call('HSET', KEYS[1], currentField, secret)
return 0
`);

/**
 * @param fields names of the hash's fields that hold the current secret and the one before
 * @throws ServiceError RATE_LIMITED when five replaced secrets still work
 */
export async function rotateSecret(
  redis: Redis,
  key: string,
  fields: { readonly current: string; readonly previous: string },
  secret: string,
): Promise<void> {
  const now = redisNow();
  const waitMs = Number(
    await rotate.run(redis, [key], [fields.current, fields.previous, secret, now, now + OVERLAP_MS]),
  );
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
