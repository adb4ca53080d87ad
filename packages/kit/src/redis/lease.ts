/**
 * A lease in Redis: one holder at a time over all processes, each with a greater fencing token than the one before. A holder
 * that vanishes loses it by itself, and one that renews it hears of those who wait.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Redis } from './connection.ts';
import { loadScript } from './script.ts';

/** How long a wish for a taken lease is remembered; whoever waits repeats it. */
const WISH_MS = 2000;

const take = loadScript(new URL('./lua/lease-take.lua', import.meta.url));
const renew = loadScript(new URL('./lua/lease-renew.lua', import.meta.url));
const release = loadScript(new URL('./lua/lease-release.lua', import.meta.url));

const Taken = z.tuple([z.union([z.literal(0), z.literal(1)]), z.string()]);
const Renewed = z.enum(['held', 'wanted', 'lost']);

interface LeaseRequest {
  readonly leaseMs: number;
  /** Who asks, as no one else is called. A second request of the holder gets a new token. Default: a random id. */
  readonly who?: string;
  /** Whether a holder is to hear that somebody waits. Default false. */
  readonly asking?: boolean;
}

export class RedisLease {
  /** Holds `<fencing token> <who>` of the holder. */
  readonly key: string;
  readonly #tokens: string;
  readonly #wish: string;

  /**
   * @param keyOf such as `ownKey`; its leases share a counter of tokens
   * @param name such as `upload:upl_0123456789abcdef`; none where there is but one
   */
  constructor(keyOf: (...segments: string[]) => string, ...name: string[]) {
    this.key = keyOf('lease', ...name);
    this.#tokens = keyOf('lease-tokens');
    this.#wish = keyOf('lease-wanted', ...name);
  }

  /** Answers who holds it now. */
  async take(
    redis: Redis,
    { leaseMs, who = randomUUID(), asking = false }: LeaseRequest,
  ): Promise<{ readonly isTaken: boolean; readonly holder: string }> {
    const keys = [this.key, this.#tokens, this.#wish];
    const answer = await take.run(redis, keys, [who, leaseMs, asking ? WISH_MS : 0]);
    const [taken, holder] = Taken.parse(answer);
    return { isTaken: taken === 1, holder };
  }

  /** Prolongs it. `wanted`: it is still held, and somebody waits for it. `lost`: another may hold it now. */
  async renew(redis: Redis, holder: string, leaseMs: number): Promise<z.infer<typeof Renewed>> {
    return Renewed.parse(await renew.run(redis, [this.key, this.#wish], [holder, leaseMs]));
  }

  /** Gives it back, if this holder still has it. */
  async release(redis: Redis, holder: string): Promise<void> {
    await release.run(redis, [this.key], [holder]);
  }
}
