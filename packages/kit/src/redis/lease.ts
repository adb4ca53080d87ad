/**
 * A lease in Redis: one holder at a time over all processes, with increasing fencing tokens. It
 * expires if its holder vanishes; at each renewal the holder hears whether others wait.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Redis } from './connection.ts';
import { loadScript } from './script.ts';

/** How long a request for a held lease is remembered; waiting processes repeat it. */
const REQUEST_MS = 2000;

const take = loadScript(new URL('./lua/lease-take.lua', import.meta.url));
const renew = loadScript(new URL('./lua/lease-renew.lua', import.meta.url));
const release = loadScript(new URL('./lua/lease-release.lua', import.meta.url));

const Taken = z.tuple([z.union([z.literal(0), z.literal(1)]), z.string()]);
const Renewed = z.enum(['held', 'wanted', 'lost']);

interface LeaseRequest {
  readonly leaseMs: number;
  /** Unique name of the caller. A holder that asks again gets a new token. Default: a random id. */
  readonly who?: string;
  /** Whether the holder hears that this caller waits. Default false. */
  readonly asking?: boolean;
}

export class RedisLease {
  /** Its value is the holder: `<fencing token> <who>`. */
  readonly key: string;
  readonly #tokens: string;
  readonly #request: string;

  /**
   * @param keyOf such as `ownKey`; its leases share a counter of tokens
   * @param name such as `upload:upl_0123456789abcdef`; none if there is only one
   */
  constructor(keyOf: (...segments: string[]) => string, ...name: string[]) {
    this.key = keyOf('lease', ...name);
    this.#tokens = keyOf('lease-tokens');
    this.#request = keyOf('lease-wanted', ...name);
  }

  /** Takes the lease if it is free. @returns its holder now */
  async take(
    redis: Redis,
    { leaseMs, who = randomUUID(), asking = false }: LeaseRequest,
  ): Promise<{ readonly isTaken: boolean; readonly holder: string }> {
    const keys = [this.key, this.#tokens, this.#request];
    const answer = await take.run(redis, keys, [who, leaseMs, asking ? REQUEST_MS : 0]);
    const [taken, holder] = Taken.parse(answer);
    return { isTaken: taken === 1, holder };
  }

  /** Renews it. `wanted`: still held, and others wait for it. `lost`: another may hold it now. */
  async renew(redis: Redis, holder: string, leaseMs: number): Promise<z.infer<typeof Renewed>> {
    return Renewed.parse(await renew.run(redis, [this.key, this.#request], [holder, leaseMs]));
  }

  /** Releases it if this holder still has it. */
  async release(redis: Redis, holder: string): Promise<void> {
    await release.run(redis, [this.key], [holder]);
  }
}
