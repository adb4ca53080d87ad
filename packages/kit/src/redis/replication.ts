/**
 * Waits until replicas have a write (REDIS_WAIT_REPLICAS), so that it survives the master. WAIT
 * blocks its connection, so it has its own, and calls during one WAIT share the next.
 */

import type { Redis } from './connection.ts';
import { ownKey } from './keys.ts';
import { RequestBudget } from './request-budget.ts';

/** Too few replicas have the write, or its master was replaced. It may or may not be lost. */
export class NotReplicated extends Error {
  override readonly name = 'NotReplicated';
}

interface ReplicationOptions {
  /** A connection of the role `request`, for nothing else. The caller closes it. */
  readonly redis: Redis;
  /** At least 1. */
  readonly replicas: number;
}

/** With the previous wait and a submission's other commands, within 2 s. */
const WAIT_MS = 500;
/** Written because WAIT counts only the writes of its own connection. */
const MARK_KEY = ownKey('replication-mark');

interface Waiting {
  readonly keys: readonly string[];
  readonly settle: (error?: Error) => void;
}

export class Replication {
  readonly #options: ReplicationOptions;
  #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(options: ReplicationOptions) {
    this.#options = options;
  }

  /**
   * Resolves once enough replicas have everything written before the call.
   * @param keys some of the written ones: a new master may lack them
   * @throws NotReplicated, or the error of Redis
   */
  async confirm(keys: readonly string[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ keys, settle: (error) => (error === undefined ? resolve() : reject(error)) });
    if (!this.#isRunning) {
      this.#isRunning = true;
      void RequestBudget.outside(() => this.#run());
    }
    return promise;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#confirmAll(group);
      } catch (error) {
        for (const { settle } of group) settle(error instanceof Error ? error : new Error(String(error)));
      }
    }
    this.#isRunning = false;
  }

  async #confirmAll(group: readonly Waiting[]): Promise<void> {
    const { redis, replicas } = this.#options;
    const pipeline = redis.pipeline().set(MARK_KEY, Date.now());
    for (const { keys } of group) pipeline.exists(...keys);
    const answers = (await pipeline.wait(replicas, WAIT_MS).exec()) ?? [];
    const values = answers.map(([error, value]) => {
      if (error !== null) throw error;
      return Number(value);
    });
    const reached = values.at(-1) ?? 0;
    for (const [index, { keys, settle }] of group.entries()) {
      const isKnown = values[index + 1] === keys.length;
      if (reached >= replicas && isKnown) {
        settle();
      } else {
        settle(
          new NotReplicated(
            isKnown
              ? `${reached} of ${replicas} replica(s) have the submission`
              : 'the master of Redis that had the submission was replaced',
          ),
        );
      }
    }
  }
}
