/** What a janitor needs, and what the parts of its sweep work with. */
import type { Logger } from 'soundpost-base/logger';
import type { Redis } from 'soundpost-kit/redis/connection';

export interface JanitorOptions {
  /** The caller closes it. */
  readonly redis: Redis;
  /** How long a result is kept. */
  readonly outputTtlSeconds: number;
  /** How long the record of an ended job is answered. */
  readonly jobTtlSeconds: number;
  /** Removes an object of the storage; one that is not there is no error. */
  readonly removeObject: (key: string) => Promise<void>;
  /** Removes the bytes of an upload, complete or not. */
  readonly removeUpload: (file: string) => Promise<void>;
  /** Removes what dead writers have left in the storage; resolves to how many. Absent: the storage sees to it itself. */
  readonly sweepStorage?: (() => Promise<number>) | undefined;
  readonly logger: Logger;
}

/** What the parts of a sweep work with. */
export interface SweepContext extends JanitorOptions {
  /** To be called between any two steps. Throws when the sweep is no longer ours to do. */
  readonly proceed: () => Promise<void>;
}
