/**
 * Notices a worker that no longer takes jobs: a blocked connection that nobody has told is dead, or a loop inside that has come to
 * rest. Such a worker looks healthy by every other sign. The canary is the queue itself: jobs wait, this worker has room, and it begins none.
 */
import type { Queue } from 'bullmq';
import type { Logger } from 'soundpost-base/logger';
import { waitingJobs } from './open-queue.ts';

export interface DeafWatchOptions {
  /** Not on the connection on which the worker waits for jobs, but on one of the role `request`. */
  readonly queue: Queue;
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
    const { queue, look, onDeaf } = this.#options;
    const waiting = await waitingJobs(queue);
    const { begun, hasRoom } = look();
    const inVain = waiting > 0 && hasRoom && begun === this.#begun;
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
