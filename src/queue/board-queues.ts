/** The queues as a board shows them, and who may ask it. */
import { Queue } from 'bullmq';
import type { Logger } from '../logger.ts';
import { admitRequest, FAILED_KEYS_PER_MINUTE } from './admission.ts';
import { queueNames } from './names.ts';
import { RATE_WINDOW_SECONDS, rateKey } from './rate.ts';
import { KEY_PREFIX, type Redis } from './redis.ts';
import { Renewed } from './renewed.ts';

export interface BoardQueues {
  readonly queues: readonly Queue[];
  close(): Promise<void>;
}

/** @param redis of the role `request` */
export async function openBoardQueues(redis: Redis, logger: Logger): Promise<BoardQueues> {
  const renewed = Object.values(queueNames).map((name) => {
    const warn = (error: Error): void =>
      logger.warn({ error: error.message }, `${name} queue, for the board`);
    return new Renewed(() => new Queue(name, { connection: redis, prefix: KEY_PREFIX }).on('error', warn));
  });
  return {
    queues: await Promise.all(renewed.map((queue) => queue.usable())),
    async close() {
      await Promise.all(renewed.map((queue) => queue.close()));
    },
  };
}

/** Wrong passwords count with wrong API keys: whoever brought too many is not let in with the right one either, or guessing would go on. */
export async function admitAdmin(
  redis: Redis,
  address: string,
  isRight: boolean,
): Promise<'admitted' | 'refused' | { readonly retryAfterSeconds: number }> {
  if (isRight) {
    const failed = Number((await redis.get(rateKey('failed-key', address))) ?? 0);
    return failed < FAILED_KEYS_PER_MINUTE ? 'admitted' : { retryAfterSeconds: RATE_WINDOW_SECONDS };
  }
  const wrong = { claim: undefined, address, policy: 'read', limit: 0, cost: 0 } as const;
  const { outcome, ...rest } = await admitRequest(redis, wrong);
  return outcome === 'blocked' && 'retryAfterSeconds' in rest ? rest : 'refused';
}
