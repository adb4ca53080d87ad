/** What the other replicas know of an instance without asking the one that has it: its connection, and its own address. */
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { ConnectionState } from '../../contract/gateway-instances.ts';
import type { Logger } from '../../logger.ts';
import type { Redis } from '../../queue/redis.ts';
import { gatewayKey } from '../redis-keys.ts';
import { FencedScript } from './fenced-script.ts';
import type { Hold } from './hold.ts';
import { OWNERS } from './ownership.ts';

const STATES = gatewayKey('instance-states');
const AGAIN_MS = 1000;

const Published = z.object({ holder: z.string(), state: ConnectionState, ownJid: z.string() });

export interface PublishedState {
  readonly state: ConnectionState;
  /** Empty while it is not known. */
  readonly ownJid: string;
}

/** Of an instance that its last replica has left, or not told of yet: somebody is about to take it. */
export const unpublished: PublishedState = { state: 'connecting', ownJid: '' };

const publishScript = new FencedScript(`return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])`);

export class PublishedStates {
  readonly #redis: Redis;
  readonly #logger: Logger;

  constructor(redis: Redis, logger: Logger) {
    this.#redis = redis;
    this.#logger = logger;
  }

  /**
   * Never rejects: other replicas show what they were told last until it succeeds, which is tried while the instance is ours.
   * @param read as it is when it is told; undefined when there is nothing to tell any more
   */
  async publish(hold: Hold, read: () => Promise<PublishedState | undefined>): Promise<void> {
    while (hold.isGood) {
      try {
        const state = await read();
        if (state !== undefined) {
          const published: z.infer<typeof Published> = { holder: hold.holder, ...state };
          await publishScript.run(this.#redis, hold, [STATES], [hold.what, JSON.stringify(published)]);
        }
        return;
      } catch (error) {
        this.#logger.debug({ err: error, instance: hold.what }, 'a state was not told to other replicas');
        await wait(AGAIN_MS, undefined, { ref: false, signal: hold.lost }).catch(() => undefined);
      }
    }
  }

  /** By instance; of those that were never told of nothing. */
  async of(instanceIds: readonly string[]): Promise<ReadonlyMap<string, PublishedState>> {
    if (instanceIds.length === 0) {
      return new Map();
    }
    const [stored, holders] = await Promise.all([
      this.#redis.hmget(STATES, ...instanceIds),
      this.#redis.hmget(OWNERS, ...instanceIds),
    ]);
    const found = new Map<string, PublishedState>();
    for (const [index, id] of instanceIds.entries()) {
      const text = stored[index];
      if (text) {
        const { state, ownJid, holder } = Published.parse(JSON.parse(text));
        found.set(id, { state: holder === holders[index] ? state : unpublished.state, ownJid });
      }
    }
    return found;
  }

  async forget(instanceId: string): Promise<void> {
    await this.#redis.hdel(STATES, instanceId);
  }
}
