/** How much stands in the queues, and for how long, for whoever watches the service: one script, whatever the length of the queues. */
import { type QueueName, queueKey, queueNames } from './names.ts';
import type { Redis } from './redis.ts';
import { RedisScript } from './script.ts';

export interface QueueState {
  readonly queue: QueueName;
  /** Jobs that wait for a worker. */
  readonly waiting: number;
  readonly active: number;
  /** Jobs whose next try has a time. */
  readonly delayed: number;
  /** Parents whose child has not ended. */
  readonly waiting_children: number;
  /** Of the job that has waited longest; 0 when none waits. */
  readonly oldestAgeSeconds: number;
}

/**
 * How many jobs at the head of a queue are looked at for the oldest. Jobs of one flow stand in the order they came, and the first of each flow stands near the
 * head (docs/decisions/0004-fairness.md): with more flows than this the oldest may be missed, and one nearly as old is told.
 */
const LOOKED_AT = 200;

// The time of a job is that of its acceptance. An announcement that was tried before waits since its next try was due, which
// no field tells once it is due: of those only the delayed ones that nobody has taken up count. BullMQ's score of a delayed job is its time * 0x1000.
const look = new RedisScript(`
local now, lookedAt = tonumber(ARGV[1]), ${LOOKED_AT}
local answer = {}
for q = 1, #KEYS, 5 do
  local prioritized, wait, active, delayed, children = unpack(KEYS, q, q + 4)
  local prefix = string.sub(wait, 1, -5)
  local isExtract = ARGV[2] == wait
  local oldest = now
  local function see(ids)
    for _, id in ipairs(ids) do
      local times = redis.call('HMGET', prefix .. id, 'timestamp', 'processedOn')
      local since = tonumber(times[1] or '')
      if since and since < oldest and (isExtract or not times[2]) then oldest = since end
    end
  end
  see(redis.call('ZRANGE', prioritized, 0, lookedAt - 1))
  see(redis.call('LRANGE', wait, -lookedAt, -1))
  local due = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  if due then oldest = math.min(oldest, tonumber(due) / 4096) end
  answer[#answer + 1] = redis.call('ZCARD', prioritized) + redis.call('LLEN', wait)
  answer[#answer + 1] = redis.call('LLEN', active)
  answer[#answer + 1] = redis.call('ZCARD', delayed)
  answer[#answer + 1] = redis.call('ZCARD', children)
  answer[#answer + 1] = math.max(0, math.floor(now - oldest))
end
return answer
`);

/** @param redis of the role `request`: the answer comes, or fails, within its deadline */
export async function readQueues(redis: Redis): Promise<QueueState[]> {
  const queues = Object.values(queueNames);
  const keys = queues.flatMap((queue) =>
    ['prioritized', 'wait', 'active', 'delayed', 'waiting-children'].map((part) => queueKey(queue, part)),
  );
  const answer = (await look.run(redis, keys, [Date.now(), queueKey('extract', 'wait')])) as number[];
  return queues.map((queue, nth) => {
    const [waiting = 0, active = 0, delayed = 0, waiting_children = 0, ageMs = 0] = answer.slice(
      nth * 5,
      nth * 5 + 5,
    );
    return { queue, waiting, active, delayed, waiting_children, oldestAgeSeconds: ageMs / 1000 };
  });
}
