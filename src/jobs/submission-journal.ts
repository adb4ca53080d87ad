/**
 * What this process has accepted lately, in its memory: a failover makes a replica the master that may have missed the last of it, and a Redis that
 * lost its machine comes back without its last second. Whenever the connection was renewed, what is missing is submitted again under its ids.
 */
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';

interface Entry {
  /** A submission as JSON, so that its size is known. */
  readonly text: string;
  readonly atMs: number;
}

interface JournalOptions<Submission> {
  /** The connection on which submissions were made. */
  readonly redis: Redis;
  /** Submits again whatever of it Redis does not have; answers how many jobs. */
  readonly restore: (submission: Submission) => Promise<number>;
  readonly logger: Logger;
}

/** Of a cluster single nodes come and go. */
const RENEWALS = ['ready', '+node', '-node'];
/** Longer than the Sentinels need to see that a master is gone, and to replace it. */
const KEEP_MS = 5 * 60 * 1000;
/** A submission takes half a kilobyte to many, a batch of long messages a megabyte; above this the oldest are forgotten. */
const MOST_CHARACTERS = 8 * 1024 * 1024;
/** After a renewal, and again: the first new connection may have been to the old master. */
const LOOKS_AFTER_MS = [200, 5000, 20_000];
const NEXT_TRIES_MS = [5000, 20_000];

export class SubmissionJournal<Submission> {
  readonly #options: JournalOptions<Submission>;
  readonly #entries = new Set<Entry>();
  #characters = 0;
  /** Of looks that are still to come; another renewal begins them anew. */
  #timers: NodeJS.Timeout[] = [];
  readonly #onRenewed = (): void => this.#lookAfter(LOOKS_AFTER_MS);
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: JournalOptions<Submission>) {
    this.#options = options;
    for (const event of RENEWALS) options.redis.on(event, this.#onRenewed);
  }

  /** Remembers a submission that Redis has acknowledged; it is plain data. */
  note(submission: Submission): void {
    const text = JSON.stringify(submission);
    this.#entries.add({ text, atMs: Date.now() });
    this.#characters += text.length;
    this.#forgetOld();
  }

  /** What is older may have ended and be gone from Redis for good. */
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
      logger.debug({ err: error }, 'what was accepted could not be looked for yet');
      this.#lookAfter(NEXT_TRIES_MS);
    }
    if (restored > 0) {
      logger.warn({ restored }, 'Redis had lost jobs that were accepted; they were submitted again');
    }
  }

  /** Resolves when nothing of it is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const event of RENEWALS) this.#options.redis.off(event, this.#onRenewed);
    this.#lookAfter([]);
    await this.#looking;
  }
}
