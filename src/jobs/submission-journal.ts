/**
 * Remembers recently accepted submissions in memory. A failover or a crashed Redis can lose the
 * last second; after each reconnection, missing jobs are submitted again under their ids.
 */
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';

interface Entry {
  /** A submission as JSON, so that its size is known. */
  readonly text: string;
  readonly atMs: number;
}

interface JournalOptions<Submission> {
  /** The connection used for submissions. */
  readonly redis: Redis;
  /** Resubmits what Redis has lost; answers how many jobs. */
  readonly restore: (submission: Submission) => Promise<number>;
  readonly logger: Logger;
}

/** Nodes of a cluster come and go. */
const RENEWALS = ['ready', '+node', '-node'];
/** Longer than Sentinels need to detect a dead master and replace it. */
const KEEP_MS = 5 * 60 * 1000;
/** Submissions take about 500 bytes to 1 MB (a batch of long messages); the oldest are dropped. */
const MOST_CHARACTERS = 8 * 1024 * 1024;
/** Repeated after a reconnection: the first one may have reached the old master. */
const LOOKS_AFTER_MS = [200, 5000, 20_000];
const NEXT_TRIES_MS = [5000, 20_000];

export class SubmissionJournal<Submission> {
  readonly #options: JournalOptions<Submission>;
  readonly #entries = new Set<Entry>();
  #characters = 0;
  /** Pending checks; another reconnection restarts them. */
  #timers: NodeJS.Timeout[] = [];
  readonly #onRenewed = (): void => this.#lookAfter(LOOKS_AFTER_MS);
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: JournalOptions<Submission>) {
    this.#options = options;
    for (const event of RENEWALS) options.redis.on(event, this.#onRenewed);
  }

  /** Remembers a submission acknowledged by Redis; it must be plain data. */
  note(submission: Submission): void {
    const text = JSON.stringify(submission);
    this.#entries.add({ text, atMs: Date.now() });
    this.#characters += text.length;
    this.#forgetOld();
  }

  /** Older jobs may have ended and left Redis for good. */
  #forgetOld(): void {
    for (const entry of this.#entries) {
      if (this.#characters <= MOST_CHARACTERS && Date.now() - entry.atMs < KEEP_MS) break;
      this.#drop(entry);
    }
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry);
    this.#characters -= entry.text.length;
  }

  #lookAfter(delaysMs: readonly number[]): void {
    for (const timer of this.#timers) clearTimeout(timer);
    const look = (): void => {
      this.#looking = this.#looking.then(() => this.#look());
    };
    this.#timers = this.#isClosed ? [] : delaysMs.map((ms) => setTimeout(look, ms));
  }

  async #look(): Promise<void> {
    const { restore, logger } = this.#options;
    let restored = 0;
    this.#forgetOld();
    try {
      for (const { text } of this.#entries) {
        if (this.#isClosed) break;
        restored += await restore(JSON.parse(text));
      }
    } catch (error) {
      logger.debug({ err: error }, 'accepted jobs could not be checked yet');
      this.#lookAfter(NEXT_TRIES_MS);
    }
    if (restored > 0) {
      logger.warn({ restored }, 'Redis had lost jobs that were accepted; they were submitted again');
    }
  }

  /** Resolves when no check is running. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const event of RENEWALS) this.#options.redis.off(event, this.#onRenewed);
    this.#lookAfter([]);
    await this.#looking;
  }
}
