/**
 * Works through a Redis stream in order, at least once an entry: what a process that died had taken is claimed by
 * whoever is left, so a handler has to bear an entry twice.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { Logger } from '../logger.ts';
import { closeRedis, type Redis } from '../queue/redis.ts';
import { parseEntries, parseStreams, type StreamEntry } from './event-stream.ts';

export interface StreamConsumerOptions {
  /** A connection of its own, since reading blocks it. Closed with the consumer. */
  readonly redis: Redis;
  readonly stream: string;
  readonly group: string;
  /** Where a group that does not exist yet begins: `0` everything kept, `$` only what comes. */
  readonly from: '0' | '$';
  /** An entry that was taken this long ago and not finished is taken over, ms. */
  readonly claimIdleMs: number;
  /** Whether finished entries are removed from the stream: only where this group is its one reader. */
  readonly removeFinished: boolean;
  /** A rejection leaves the entry to be claimed again after claimIdleMs. */
  readonly handle: (entry: StreamEntry, signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
}

const BATCH = 16;
const LONGEST_BLOCK_MS = 5000;
const PAUSE_AFTER_FAILURE_MS = 500;

const ClaimReply = z.tuple([z.string(), z.unknown()]).rest(z.unknown());

export class StreamConsumer {
  readonly #options: StreamConsumerOptions;
  readonly #consumer = randomUUID();
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #nextClaimAt = 0;

  constructor(options: StreamConsumerOptions) {
    this.#options = options;
  }

  /** Resolves once the group exists: nothing that is appended afterwards is missed. */
  async start(): Promise<void> {
    await this.#ensureGroup();
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    // A blocked read ends only with its connection.
    this.#options.redis.disconnect();
    await this.#running;
    await closeRedis(this.#options.redis);
  }

  /** Tells the others that this entry is still being worked on. */
  async keep(entry: StreamEntry): Promise<void> {
    const { redis, stream, group } = this.#options;
    await redis.xclaim(stream, group, this.#consumer, 0, entry.id, 'JUSTID');
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        for (const entry of [...(await this.#claimed()), ...(await this.#fresh())]) {
          await this.#finish(entry);
        }
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  async #finish(entry: StreamEntry): Promise<void> {
    const { redis, stream, group, handle, removeFinished, logger } = this.#options;
    try {
      await handle(entry, this.#closing.signal);
    } catch (error) {
      if (!this.#closing.signal.aborted) {
        logger.warn(
          { err: error, stream, entry: entry.id },
          'stream entry failed, it will be taken up again',
        );
      }
      return;
    }
    await redis.xack(stream, group, entry.id);
    if (removeFinished) {
      await redis.xdel(stream, entry.id);
    }
  }

  async #recover(error: unknown): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) {
      return;
    }
    this.#options.logger.warn({ err: error, stream: this.#options.stream }, 'reading a stream failed');
    await wait(PAUSE_AFTER_FAILURE_MS, undefined, { signal }).catch(() => undefined);
    // A Redis that came back empty has lost the group.
    await this.#ensureGroup().catch(() => undefined);
  }

  async #claimed(): Promise<StreamEntry[]> {
    const { redis, stream, group, claimIdleMs } = this.#options;
    if (Date.now() < this.#nextClaimAt) {
      return [];
    }
    this.#nextClaimAt = Date.now() + claimIdleMs;
    const reply = await redis.xautoclaim(stream, group, this.#consumer, claimIdleMs, '0', 'COUNT', BATCH);
    return parseEntries(ClaimReply.parse(reply)[1]);
  }

  async #fresh(): Promise<StreamEntry[]> {
    const { redis, stream, group, claimIdleMs } = this.#options;
    const blockMs = Math.min(claimIdleMs, LONGEST_BLOCK_MS);
    return parseStreams(
      await redis.xreadgroup(
        'GROUP',
        group,
        this.#consumer,
        'COUNT',
        BATCH,
        'BLOCK',
        blockMs,
        'STREAMS',
        stream,
        '>',
      ),
    );
  }

  async #ensureGroup(): Promise<void> {
    const { redis, stream, group, from } = this.#options;
    try {
      await redis.xgroup('CREATE', stream, group, from, 'MKSTREAM');
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('BUSYGROUP'))) {
        throw error;
      }
    }
  }
}
