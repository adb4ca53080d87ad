/**
 * Notices a worker that no longer takes jobs: a blocked connection that nobody has told is dead, or a loop inside that has come to
 * rest. Such a worker looks healthy by every other sign. The canary is the queue itself: jobs wait, this worker has room, and it begins none.
 */
import type { Logger } from '../logger.ts';
import { queueKey } from './names.ts';
import type { Redis } from './redis.ts';

export interface DeafWatchOptions {
  /** Not the connection on which the worker waits for jobs: one of the role `request`. */
  readonly redis: Redis;
  /** How long it may last. A healthy worker with room looks at the queue every 5 s at least, and sooner when a job is added. */
  readonly patienceSeconds: number;
  /** Jobs that the worker has begun since its start, and whether it would begin one now. */
  readonly look: () => { readonly begun: number; readonly hasRoom: boolean };
  readonly onDeaf: () => void;
  readonly logger: Logger;
}

const LOOKS = 12;

export class DeafWatch {
  readonly #options: DeafWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #begun = -1;
  /** Looks in a row that found jobs waiting in vain. */
  #vain = 0;

  constructor(options: DeafWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(
      () => {
        this.#look().catch((error: Error) => {
          // A Redis that is away says nothing of the worker.
          this.#vain = 0;
          options.logger.debug({ error: error.message }, 'the queue could not be looked at');
        });
      },
      (options.patienceSeconds * 1000) / LOOKS,
    );
  }

  async #look(): Promise<void> {
    const { redis, look, onDeaf } = this.#options;
    const [prioritized, wait] = await Promise.all([
      redis.zcard(queueKey('extract', 'prioritized')),
      redis.llen(queueKey('extract', 'wait')),
    ]);
    const { begun, hasRoom } = look();
    const inVain = prioritized + wait > 0 && hasRoom && begun === this.#begun;
    this.#begun = begun;
    this.#vain = inVain ? this.#vain + 1 : 0;
    if (this.#vain === LOOKS) {
      onDeaf();
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
