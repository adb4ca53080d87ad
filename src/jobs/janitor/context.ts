/** What a janitor and the parts of its sweep use. */
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';

export interface JanitorOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long a result is kept. */
  readonly outputTtlSeconds: number;
  /** How long the record of an ended job can be read. */
  readonly jobTtlSeconds: number;
  /** Removes an object from the storage; a missing one is no error. */
  readonly removeObject: (key: string) => Promise<void>;
  /** Removes an upload's bytes, complete or not. */
  readonly removeUpload: (file: string) => Promise<void>;
  /** Removes leftovers: of dead writers, and what no record names; resolves to their number. */
  readonly sweepStorage?: ((proceed: SweepContext['proceed']) => Promise<number>) | undefined;
  readonly logger: Logger;
}

/** What the parts of a sweep use. */
export interface SweepContext extends JanitorOptions {
  /** Call between any two steps. Throws once another janitor is responsible. */
  readonly proceed: () => Promise<void>;
}
