/** Replacing a secret in a Redis hash. Each one that was replaced works on until the end of its own 24 hours (decisions A6, D). */
import { ServiceError } from 'soundpost-contract/errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { RedisScript } from 'soundpost-kit/redis/script';

const OVERLAP_MS = 24 * 60 * 60 * 1000;
/** Replaced secrets that work at the same time. */
const MAX_REPLACED = 5;

/** The field `replaced`: the newest first, each as `<secret>:<until, ms>`, with blanks between them. */
const rotate = new RedisScript(`
local currentField, secret, now, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local current, replaced = unpack(redis.call('HMGET', KEYS[1], currentField, 'replaced'))
local kept = {}
local firstEnd = math.huge
for old, oldUntil in string.gmatch(replaced or '', '([^: ]+):(%d+)') do
  if tonumber(oldUntil) > now then
    kept[#kept + 1] = old .. ':' .. oldUntil
    firstEnd = math.min(firstEnd, tonumber(oldUntil))
  end
end
if #kept >= ${MAX_REPLACED} then return firstEnd - now end
if current then
  table.insert(kept, 1, current .. ':' .. untilMs)
  redis.call('HSET', KEYS[1], 'replaced', table.concat(kept, ' '))
end
redis.call('HSET', KEYS[1], currentField, secret)
return 0
`);

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
  const waitMs = Number(await rotate.run(redis, [key], [currentField, secret, now, now + OVERLAP_MS]));
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
