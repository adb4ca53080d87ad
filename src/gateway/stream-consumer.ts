/**
 * Works through a Redis stream, at least once an entry and, as long as no process dies, in order. What a process that died
 * had taken is claimed by whoever is left, so a handler has to bear an entry twice.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import type { Logger } from '../logger.ts';
import type { Redis } from '../queue/redis.ts';
import { parseEntries, parseStreams, type StreamEntry } from './event-stream.ts';
import { untilAborted } from './until-aborted.ts';

/** @param signal rejects with its reason */
export type OnDuty = (signal: AbortSignal) => Promise<AbortSignal>;

export interface StreamConsumerOptions {
  /** A connection of its own, since reading blocks it. Closed with the consumer. */
  readonly redis: Redis;
  readonly stream: string;
  readonly group: string;
  /** Where a group that does not exist yet begins: `0` everything kept, `$` only what comes. */
  readonly from: '0' | '$';
  /** A process that was silent this long about what it had taken loses it to the others, ms. */
  readonly claimIdleMs: number;
  /** Whether finished entries are removed from the stream: only where this group is its one reader. */
  readonly removeFinished: boolean;
  /**
   * Resolves when this process may take entries, where one at a time shall, with what is aborted when it may no more. Whoever comes next
   * begins with what was left unfinished, so the order holds. Default: it always may, beside others.
   */
  readonly onDuty?: OnDuty | undefined;
  /** May take its time. A rejection leaves the entry to be taken up again after claimIdleMs. */
  readonly handle: (entry: StreamEntry, signal: AbortSignal) => Promise<void>;
  readonly logger: Logger;
}

const BATCH = 16;
/** Shorter than what lies between a replica's giving a duty up and another's taking it (LeaseTiming.marginMs): no old read takes an entry from the new one. */
const LONGEST_BLOCK_MS = 1500;
const PAUSE_AFTER_FAILURE_MS = 500;
/** How long handing back what was not finished may delay a shutdown. */
const RELEASE_TIMEOUT_MS = 1000;

const ClaimReply = z.tuple([z.string(), z.unknown()]).rest(z.unknown());

export class StreamConsumer {
  readonly #options: StreamConsumerOptions;
  readonly #consumer = randomUUID();
  readonly #closing = new AbortController();
  /** Entries that were taken and not finished. */
  readonly #taken = new Set<string>();
  #running: Promise<void> | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #nextClaimAt = 0;
  /** Of the duty that this process had last. */
  #lost: AbortSignal | undefined;
  /** Aborted with the duty, or when the consumer is closed. */
  #mine = this.#closing.signal;
  /** What whoever had the duty before left unfinished is not known to be all taken up yet. */
  #isTakingOver = false;

  constructor(options: StreamConsumerOptions) {
    this.#options = options;
  }

  /** Resolves once the group exists: nothing that is appended afterwards is missed. */
  async start(): Promise<void> {
    await this.#ensureGroup();
    this.#running = this.#run();
    this.#renewal = setInterval(() => {
      this.#claimOwn(0).catch(() => undefined);
    }, this.#options.claimIdleMs / 3);
  }

  /** Hands what is not finished to the other processes. */
  async close(): Promise<void> {
    clearInterval(this.#renewal);
    this.#closing.abort();
    await this.#running;
    // Of an age that makes the entries free to be claimed at once. A connection that is still blocked by a read does not
    // get to it: but then nothing was taken.
    const released = this.#claimOwn(this.#options.claimIdleMs).catch(() => undefined);
    await untilAborted(released, AbortSignal.timeout(RELEASE_TIMEOUT_MS)).catch(() => undefined);
    this.#options.redis.disconnect();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const mine = await this.#whenMine();
        const entries = await untilAborted(this.#next(), mine);
        for (const entry of entries) {
          this.#taken.add(entry.id);
        }
        for (const entry of entries) {
          await this.#finish(entry, mine);
        }
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  /** Resolves when entries may be taken, with what is aborted when they may not be any more. */
  async #whenMine(): Promise<AbortSignal> {
    const { signal } = this.#closing;
    const lost = await this.#options.onDuty?.(signal);
    if (lost !== undefined && lost !== this.#lost) {
      this.#lost = lost;
      this.#mine = AbortSignal.any([signal, lost]);
      this.#isTakingOver = true;
    }
    return this.#mine;
  }

  async #finish(entry: StreamEntry, signal: AbortSignal): Promise<void> {
    const { redis, stream, group, handle, removeFinished, logger } = this.#options;
    signal.throwIfAborted();
    try {
      await untilAborted(handle(entry, signal), signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.warn({ err: error, stream, entry: entry.id }, 'stream entry failed, it will be taken up again');
      this.#taken.delete(entry.id);
      return;
    }
    await untilAborted(redis.xack(stream, group, entry.id), signal);
    this.#taken.delete(entry.id);
    if (removeFinished) {
      await untilAborted(redis.xdel(stream, entry.id), signal);
    }
  }

  async #recover(error: unknown): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) {
      return;
    }
    this.#taken.clear();
    if (this.#lost?.aborted) {
      return;
    }
    this.#options.logger.warn({ err: error, stream: this.#options.stream }, 'reading a stream failed');
    await wait(PAUSE_AFTER_FAILURE_MS, undefined, { signal }).catch(() => undefined);
    // A Redis that came back empty has lost the group.
    await untilAborted(this.#ensureGroup(), signal).catch(() => undefined);
  }

  async #next(): Promise<StreamEntry[]> {
    const claimed = await this.#claimAbandoned();
    return claimed.length > 0 ? claimed : this.#readNew();
  }

  async #claimAbandoned(): Promise<StreamEntry[]> {
    const { redis, stream, group, claimIdleMs } = this.#options;
    if (!this.#isTakingOver && Date.now() < this.#nextClaimAt) {
      return [];
    }
    // Whoever alone may take entries need not wait until it is known that their last taker is gone.
    const idleMs = this.#isTakingOver ? 0 : claimIdleMs;
    const reply = await redis.xautoclaim(stream, group, this.#consumer, idleMs, '0', 'COUNT', BATCH);
    const entries = parseEntries(ClaimReply.parse(reply)[1]);
    // A full batch may not have been all.
    const isAll = entries.length < BATCH;
    this.#nextClaimAt = isAll ? Date.now() + claimIdleMs : 0;
    this.#isTakingOver &&= !isAll;
    return entries;
  }

  async #readNew(): Promise<StreamEntry[]> {
    const { redis, stream, group, claimIdleMs } = this.#options;
    const blockMs = Math.min(claimIdleMs, LONGEST_BLOCK_MS);
    const reply = await redis.xreadgroup(
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
    );
    return parseStreams(reply);
  }

  /** Sets how long nothing was heard of the entries that this process has taken. */
  async #claimOwn(idleMs: number): Promise<void> {
    if (this.#taken.size > 0) {
      const { redis, stream, group } = this.#options;
      const entries = [...this.#taken];
      await redis.call('XCLAIM', stream, group, this.#consumer, 0, ...entries, 'IDLE', idleMs, 'JUSTID');
    }
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
