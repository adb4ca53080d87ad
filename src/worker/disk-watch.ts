/**
 * Whether there is room for more jobs. While less than the reserve is free a worker takes none: they wait in the queue, for space or for a
 * worker that has some, instead of failing one after the other.
 */
import type { Logger } from 'soundpost-base/logger';
import type { DiskSpace } from 'soundpost-kit/storage/disk-space';

export type DiskState = 'ok' | 'low';

interface DiskWatchOptions {
  readonly spaces: readonly DiskSpace[];
  /** What is stopped, and goes on when there is room again. */
  readonly consumer: { pause(why: 'disk'): void; resume(why: 'disk'): void };
  readonly logger: Logger;
}

/** Less than the three tries of a job take together: none that was taken up in between can use them all up. */
const LOOK_EVERY_MS = 1000;

export class DiskWatch {
  readonly #options: DiskWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #state: DiskState = 'ok';
  #isClosed = false;

  private constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Resolves after the first look. */
  static async start(options: DiskWatchOptions): Promise<DiskWatch> {
    const watch = new DiskWatch(options);
    await watch.#look();
    return watch;
  }

  get state(): DiskState {
    return this.#state;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    const { spaces, logger } = this.#options;
    try {
      const low = await Promise.all(spaces.map((space) => space.isLow(this.#state === 'low')));
      if (!this.#isClosed) this.#note(low.includes(true) ? 'low' : 'ok');
    } catch (error) {
      // A volume that does not answer is told of by the storage's own check; jobs that need it fail and are tried again.
      logger.warn({ err: error }, 'the free disk space could not be read');
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#look(), LOOK_EVERY_MS);
  }

  #note(state: DiskState): void {
    if (state === this.#state) return;
    this.#state = state;
    const { consumer, logger } = this.#options;
    if (state === 'low') {
      consumer.pause('disk');
      logger.error(
        'the disk is nearly full (DISK_RESERVE_BYTES): no more jobs are taken until there is room',
      );
    } else {
      consumer.resume('disk');
      logger.warn('there is room on the disk again: jobs are taken');
    }
  }
}
