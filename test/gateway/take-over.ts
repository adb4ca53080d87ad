/** The right to act for an instance, for tests of what works with it below a whole gateway. */
import { randomUUID } from 'node:crypto';
import { Hold } from '../../src/gateway/replicas/hold.ts';
import { Ownership } from '../../src/gateway/replicas/ownership.ts';
import type { Redis } from '../../src/queue/redis.ts';

/** Takes the instance from whoever has it, as a replica does from one that has died. It need not be recorded. */
export async function takeOver(redis: Redis, instanceId: string): Promise<Hold> {
  const ownership = new Ownership(redis, [instanceId]);
  const before = await ownership.locate(instanceId);
  if (before !== undefined) {
    await ownership.end(before.place.id);
  }
  const id = randomUUID();
  await ownership.begin({ id, url: '', home: '' }, 60 * 60_000, '');
  const holder = await ownership.take(id, instanceId);
  if (holder === undefined) {
    throw new Error('the instance could not be taken over');
  }
  return new Hold({ what: instanceId, holder, isValid: () => true });
}
