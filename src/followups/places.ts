/**
 * Slots limit concurrent attempts for each key and host, across all processes. Without a free slot
 * a job leaves its worker: it is delayed, and promoted in its turn; keys and hosts alternate. A
 * host that keeps failing gets one attempt at a time. A slot is a lease, so a dead process's slot
 * expires.
 */

import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import type { QueueName } from '../jobs/names.ts';

interface PlaceSet {
  /** Equal names share the same slots. */
  readonly name: QueueName | 'voice-delay';
  readonly perKey: number;
  readonly perHost: number;
  /** Longer than any attempt: then the slot is free again, whatever happened to its holder. */
  readonly leaseMs: number;
}

/** The sender and receiver of an attempt, so that keys and hosts alternate. */
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

/** Failures in a row after which a host is only probed. */
const FAILING_AFTER = 3;
/** How long a failing host is remembered: longer than the longest interval between attempts. */
const REMEMBERED_SECONDS = 2 * 24 * 60 * 60;
/** Without promotion a job returns by itself; at most three per second. */
const PATIENCE_MS = 30_000;
const PATIENCE_PER_JOB_MS = 300;

const take = loadScript(new URL('./lua/try-place-take.lua', import.meta.url));
const leave = loadScript(new URL('./lua/try-place-leave.lua', import.meta.url));

const Admitted = z.array(z.string());

export class TryPlaces {
  readonly #redis: Redis;
  readonly #end: (jobId: string) => Promise<unknown>;

  /** @param promote ends a job's delay */
  constructor(redis: Redis, promote: (jobId: string) => Promise<unknown>) {
    this.#redis = redis;
    this.#end = promote;
  }

  /**
   * Whether the attempt can start; it must then `leave`. Otherwise its job was delayed, and the
   * worker drops it.
   * @param park delays the job by this many ms
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

  /** @param host what the attempt shows of its host; undefined: nothing */
  async leave(claim: Claim, host: 'answered' | 'failed' | undefined): Promise<void> {
    const args = [...argsOf(claim), host ?? '', REMEMBERED_SECONDS];
    const admitted = Admitted.parse(await leave.run(this.#redis, [placesKey(claim.places.name)], args));
    await Promise.all(admitted.map((jobId) => this.#promote(jobId)));
  }

  async #take(claim: Claim): Promise<number> {
    return z.int().parse(await take.run(this.#redis, [placesKey(claim.places.name)], argsOf(claim)));
  }

  /** A job whose promotion fails returns by itself. */
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

/** When the host began to fail, ms since the epoch; undefined if it does not. */
export async function failingSinceMs(
  redis: Redis,
  name: PlaceSet['name'],
  host: string,
): Promise<number | undefined> {
  const state = FailingHost.safeParse(await redis.hgetall(`${placesKey(name)}:failing:${host}`));
  return state.success && state.data.failures >= FAILING_AFTER ? state.data.since : undefined;
}
