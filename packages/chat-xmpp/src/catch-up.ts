/** What the account's archive holds and the gateway has not dealt with: after a start, and after every lost session. */
import type { Logger } from 'soundpost-base/logger';
import type { Archive } from './archive.ts';
import { conditionOf, isNothingThere } from './failure.ts';
import type { Inbound } from './inbound.ts';
import type { Memory } from './memory.ts';

interface CatchUpOptions {
  readonly archive: Archive;
  readonly memory: Memory;
  readonly inbound: Inbound;
  /** Setting `syncFullHistory`, as it is now. */
  readonly wantsHistory: () => boolean;
  readonly logger: Logger;
}

const PAGE_MESSAGES = 100;

export class CatchUp {
  readonly #options: CatchUpOptions;
  #running: Promise<void> = Promise.resolve();
  /** Runs that have not ended, the waiting ones among them. */
  #runs = 0;

  constructor(options: CatchUpOptions) {
    this.#options = options;
  }

  /** Reads on from what was seen last; the account's whole archive when that is wanted and it is the first time. */
  start(): void {
    const { logger } = this.#options;
    this.#runs++;
    this.#running = this.#running
      .then(() => this.#run())
      .catch((error: unknown) => logger.warn({ err: error }, 'reading the archive broke off'))
      .finally(() => {
        this.#runs--;
      });
  }

  /** A message came live under this id in the archive. While the archive is read, that comes to it by itself. */
  async seen(archiveId: string): Promise<void> {
    if (this.#runs === 0) {
      await this.#options.memory.setLastSeen(archiveId);
    }
  }

  async #run(): Promise<void> {
    try {
      const last = await this.#options.memory.lastSeen();
      if (last !== null) {
        await this.#readOn(last, false);
      } else if (this.#options.wantsHistory()) {
        await this.#readOn('', true);
      } else {
        await this.#skipToEnd();
      }
    } catch (error) {
      if (conditionOf(error) === 'item-not-found') {
        // The archive no longer goes back to where the reading stopped.
        await this.#skipToEnd();
      } else if (!isNothingThere(error)) {
        throw error;
      }
    }
  }

  async #readOn(from: string, history: boolean): Promise<void> {
    const { archive, memory, inbound } = this.#options;
    for (let after = from; ; ) {
      const page = await archive.page({ after, max: PAGE_MESSAGES });
      for (const { message, archiveId, atMs } of page.messages) {
        await inbound.message(message, { kind: 'archive', atMs, history });
        await memory.setLastSeen(archiveId);
      }
      if (page.complete || page.lastId === undefined) {
        return;
      }
      after = page.lastId;
    }
  }

  async #skipToEnd(): Promise<void> {
    const { archive, memory } = this.#options;
    const { lastId } = await archive.page({ before: '', max: 1 });
    // Of an empty archive everything that will come is news.
    await memory.setLastSeen(lastId ?? '');
  }
}
