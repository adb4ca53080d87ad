/** Removes what is no longer kept, at the start and every hour. */
import type { Logger } from 'soundpost-base/logger';
import { redisClock } from 'soundpost-kit/redis/clock';

const INTERVAL_MS = 60 * 60 * 1000;

export class Sweeper {
  readonly #swept: readonly { sweep(): Promise<void> }[];
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;

  constructor(swept: readonly { sweep(): Promise<void> }[], logger: Logger) {
    this.#swept = swept;
    this.#logger = logger;
  }

  /** Does not wait for the first time: whoever takes over serves meanwhile. */
  start(): void {
    this.#timer = setInterval(() => this.#sweep(), INTERVAL_MS);
    void this.#sweep();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #sweep(): Promise<void> {
    if (!redisClock.isRight) return;
    await Promise.all(this.#swept.map((one) => one.sweep())).catch((error: unknown) =>
      this.#logger.warn({ err: error }, 'removing what is no longer kept failed'),
    );
  }
}
