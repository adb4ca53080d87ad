/**
 * Places for what is sent to others: how many tries a key and a host may have under way at once, in
 * all processes together. Whoever finds none gives its place in the worker back: its job is
 * delayed, and promoted when its turn comes; keys and hosts take turns. A host that keeps failing
 * is probed by one try at a time. A place is a lease, so one whose process died comes back by
 * itself.
 */

import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import type { QueueName } from '../jobs/names.ts';

interface PlaceSet {
  /** Places of the same name are the same places. */
  readonly name: QueueName | 'voice-delay';
  readonly perKey: number;
  readonly perHost: number;
  /** After this a place is free again, whatever became of its holder: longer than any try. */
  readonly leaseMs: number;
}

/** Whose try it is and to whom, so that keys and hosts take turns. */
export interface Turn {
  /** Without spaces: a key or an instance. */
  readonly key: string;
  /** Without spaces: scheme, host and port, or an instance. */
  readonly host: string;
  readonly places: PlaceSet;
}

interface Claim extends Turn {
  readonly jobId: string;
}

/** Tries in a row that a host fails until it is probed. */
const FAILING_AFTER = 3;
/** How long it is known that a host fails: longer than the longest distance between two tries. */
const REMEMBERED_SECONDS = 2 * 24 * 60 * 60;
/** If nobody promotes a job, it comes by itself: three a second at most. */
const PATIENCE_MS = 30_000;
const PATIENCE_PER_JOB_MS = 300;

const take = loadScript(new URL('./lua/try-place-take.lua', import.meta.url));
const leave = loadScript(new URL('./lua/try-place-leave.lua', import.meta.url));

const Admitted = z.array(z.string());

export class TryPlaces {
  readonly #redis: Redis;
  readonly #end: (jobId: string) => Promise<unknown>;

  /** @param promote ends the delay of a job */
  constructor(redis: Redis, promote: (jobId: string) => Promise<unknown>) {
    this.#redis = redis;
    this.#end = promote;
  }

  /**
   * Whether the try may begin; it then has to `leave`. Otherwise its job was delayed, and the
   * worker lets it go.
   * @param park delays the job by so many ms
   */
  async take(claim: Claim, park: (ms: number) => Promise<unknown>): Promise<boolean> {
    const before = await this.#take(claim);
    if (before === 0) {
      return true;
    }
    await park(PATIENCE_MS + PATIENCE_PER_JOB_MS * before);
    // Its turn may have come before it could be promoted.
    const since = await this.#take(claim).catch(() => before);
    if (since === 0) {
      await this.#promote(claim.jobId);
    }
    return false;
  }

  /** @param host what the try says of its host; undefined: nothing */
  async leave(claim: Claim, host: 'answered' | 'failed' | undefined): Promise<void> {
    const args = [...argsOf(claim), host ?? '', REMEMBERED_SECONDS];
    const admitted = Admitted.parse(await leave.run(this.#redis, [placesKey(claim.places.name)], args));
    await Promise.all(admitted.map((jobId) => this.#promote(jobId)));
  }

  async #take(claim: Claim): Promise<number> {
    return z.int().parse(await take.run(this.#redis, [placesKey(claim.places.name)], argsOf(claim)));
  }

  /** One that cannot be promoted comes by itself. */
  async #promote(jobId: string): Promise<void> {
    await this.#end(jobId).catch(() => undefined);
  }
}

function argsOf({ jobId, key, host, places }: Claim): (string | number)[] {
  return [jobId, key, host, places.perKey, places.perHost, places.leaseMs, FAILING_AFTER];
}

function placesKey(name: PlaceSet['name']): string {
  return ownKey('places', name);
}

const FailingHost = z.object({ failures: z.coerce.number(), since: z.coerce.number() });

/** Since when the host keeps failing, ms since the epoch; undefined where it does not. */
export async function failingSinceMs(
  redis: Redis,
  name: PlaceSet['name'],
  host: string,
): Promise<number | undefined> {
  const state = FailingHost.safeParse(await redis.hgetall(`${placesKey(name)}:failing:${host}`));
  return state.success && state.data.failures >= FAILING_AFTER ? state.data.since : undefined;
}
