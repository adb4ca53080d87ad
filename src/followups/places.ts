/**
 * Slots limit concurrent attempts for each key and host, across all processes. Without a free slot
 * a job leaves its worker: it is delayed, and promoted in its turn; keys alternate, and so do the
 * endpoints of a key. An endpoint that keeps failing, or has not answered yet, gets one attempt at
 * a time, and together these leave slots to others. A slot is a lease, so a dead process's expires.
 */

import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import { z } from 'zod';
import type { QueueName } from '../jobs/names.ts';
import { digestOf, FAILING_AFTER, MOST_ENDPOINTS, REMEMBERED_SECONDS } from './endpoints.ts';

export interface PlaceSet {
  /** Equal names share the same slots. */
  readonly name: QueueName | 'voice-delay' | 'gateway-webhook-media';
  /** Three quarters at most for endpoints without a good answer, a quarter for failing ones. */
  readonly perKey: number;
  /** All but two at most for failing endpoints. */
  readonly perHost: number;
  /** Longer than any attempt: then the slot is free again, whatever happened to its holder. */
  readonly leaseMs: number;
}

/** The sender and receiver of an attempt. */
export interface Turn {
  /** Without spaces: a key or an instance. */
  readonly key: string;
  /** Without spaces: scheme, host and port, an instance, or what else they share. */
  readonly host: string;
  /** Remembered by what it answers. Undefined where each attempt has an address of its own. */
  readonly endpoint?: string;
  /** Without an endpoint: the address failed before, so it leaves slots to others. */
  readonly isRetried?: boolean;
  readonly places: PlaceSet;
}

interface Claim extends Turn {
  readonly jobId: string;
}

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

  /**
   * Also of one that still waits.
   * @param httpStatus of the attempt's answer; null: it got none; undefined: nothing was asked
   */
  async leave(claim: Claim, httpStatus: number | null | undefined): Promise<void> {
    const answer = httpStatus === undefined ? '' : (httpStatus ?? 0);
    const args = [...argsOf(claim), ...[answer, claim.endpoint ?? '', REMEMBERED_SECONDS, MOST_ENDPOINTS]];
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

function argsOf({ jobId, key, host, endpoint, isRetried, places }: Claim): (string | number)[] {
  const standing = isRetried ? '-2' : '-1';
  const asked = endpoint === undefined ? standing : digestOf(endpoint);
  return [jobId, key, host, asked, places.perKey, places.perHost, places.leaseMs, FAILING_AFTER];
}

function placesKey(name: PlaceSet['name']): string {
  return ownKey('places', name);
}
