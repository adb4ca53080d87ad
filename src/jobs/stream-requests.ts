/**
 * Limits the requests that playlists and manifests cause at other people's servers (decisions A6):
 * in all for a job, and for a key at each host how many run and begin at a time. Redis keeps the
 * limits over all workers. Processes lease small portions of them, so that a request costs no round
 * trip: eight requests of a job, and a fifth of a second of a host's.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { untilAborted } from 'soundpost-base/deadline';
import { ServiceError } from 'soundpost-contract/errors';
import { redisNow } from 'soundpost-kit/redis/clock';
import type { Redis } from 'soundpost-kit/redis/connection';
import { ownKey } from 'soundpost-kit/redis/keys';
import { loadScript } from 'soundpost-kit/redis/script';
import type { AdmitStreamRequest } from 'soundpost-media/source-request';
import { z } from 'zod';

/** Of a job. Segments count to neither, redirects to both. */
const JOB_LIMITS = { requests: 2_000, redirects: 512 } as const;
/** Of a key at a host. */
const AT_ONCE = 8;
const PER_SECOND = 40;

/** 37 a second: requests that share a new connection arrive closer together than they began. */
const BEGIN_EVERY_MS = 27;
/** Leased at a time, of a job's requests and of a host's. */
const PORTION = 8;
/** Places of a process that has died are free after it. */
const LEASE_MS = 5_000;
const RENEW_MS = 1_000;
/** How often a process without a place asks for one. */
const POLL_MS = 200;
/** Longer than a job can take with its tries. */
const COUNTED_SECONDS = 24 * 60 * 60;
/** A key that waits longer for a host is logged. */
const HELD_MS = 1_000;
/** Of a key, in what is shown. */
const SHOWN_HOSTS = 20;

const EXCEEDED: Readonly<Record<keyof typeof JOB_LIMITS, string>> = {
  requests: `the stream needs more than ${JOB_LIMITS.requests} requests beside its segments (playlists, headers, keys, redirects); send the address of the media file, or a stream with fewer headers and keys`,
  redirects: `the stream's addresses redirect more than ${JOB_LIMITS.redirects} times; send a playlist with the final addresses`,
};

/** Of a process. Tests pass one that jumps. */
interface Clock {
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<unknown>;
}

const ownClock: Clock = { nowMs: () => performance.now(), sleep: (ms) => sleep(ms) };

interface LeaseRequest {
  readonly tenant: string;
  readonly host: string;
  /** Its requests at the host that run. */
  readonly busy: number;
  /** Those and the waiting ones; 0 gives all places back. */
  readonly wanted: number;
  /** The time that it needs for the next ones. */
  readonly beginsMs: number;
}

interface Leased {
  readonly places: number;
  /** Until the time begins. */
  readonly waitMs: number;
}

interface StreamRequestsOptions {
  readonly redis: Redis;
  /** Called when a request has waited a second for its host. */
  readonly onHeld?: (held: { readonly key: string; readonly host: string }) => void;
  readonly clock?: Clock;
  /** Default: of Redis. Tests of time pass one on their clock. */
  readonly lease?: (request: LeaseRequest) => Promise<Leased>;
}

const leaseScript = loadScript(new URL('./lua/stream-requests-lease.lua', import.meta.url));
const LeaseAnswer = z.tuple([z.int(), z.int()]);

const leaseKey = (tenant: string, host: string): string => ownKey('stream-requests', tenant, host);
const hostsKey = (tenant: string): string => ownKey('stream-hosts', tenant);

/** Leases for one process. */
export function leaseOf(redis: Redis, holder: string = randomUUID()) {
  return async ({ tenant, host, busy, wanted, beginsMs }: LeaseRequest): Promise<Leased> => {
    const keys = [leaseKey(tenant, host), hostsKey(tenant)];
    const args = [host, holder, busy, wanted, beginsMs, AT_ONCE, LEASE_MS];
    const [places, waitMs] = LeaseAnswer.parse(await leaseScript.run(redis, keys, args));
    return { places, waitMs };
  };
}

/** One for a process. */
export class StreamRequests {
  readonly #options: Required<Omit<StreamRequestsOptions, 'onHeld'>> & StreamRequestsOptions;
  readonly #hosts = new Map<string, HostShare>();

  constructor(options: StreamRequestsOptions) {
    this.#options = { clock: ownClock, lease: leaseOf(options.redis), ...options };
  }

  /**
   * What an attempt at a job asks before each request. It throws ServiceError DOWNLOAD_FAILED once
   * the job, with its earlier attempts, has had all of a limit.
   */
  of(tenant: string, jobId: string): AdmitStreamRequest {
    const { redis, clock } = this.#options;
    const counted = {
      requests: new Counted(redis, jobId, 'requests'),
      redirects: new Counted(redis, jobId, 'redirects'),
    };
    // Of all hosts: many names may lead to one server.
    const pace = new Pace(clock);
    const count = async (isSegment: boolean, isRedirect: boolean): Promise<void> => {
      if (!isSegment || isRedirect) await counted.requests.take();
      if (isRedirect) await counted.redirects.take();
      await pace.turn();
    };
    return async ({ hostname, isSegment, isRedirect, signal }) => {
      await untilAborted(count(isSegment, isRedirect), signal);
      return await this.#hostOf(tenant, hostname).enter(signal);
    };
  }

  #hostOf(tenant: string, host: string): HostShare {
    const name = `${tenant} ${host}`;
    const { clock, lease, onHeld } = this.#options;
    const share =
      this.#hosts.get(name) ??
      new HostShare({
        clock,
        lease: (request) => lease({ ...request, tenant, host }),
        onHeld: () => onHeld?.({ key: tenant, host }),
        onIdle: () => this.#hosts.delete(name),
      });
    this.#hosts.set(name, share);
    return share;
  }
}

/** How many of a limit a job has left. */
class Counted {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #what: keyof typeof JOB_LIMITS;
  #left = 0;

  constructor(redis: Redis, jobId: string, what: keyof typeof JOB_LIMITS) {
    this.#redis = redis;
    this.#key = ownKey('stream-requests-of', jobId, what);
    this.#what = what;
  }

  async take(): Promise<void> {
    while (this.#left === 0) {
      const used = await this.#redis.incrby(this.#key, PORTION);
      if (used === PORTION) await this.#redis.expire(this.#key, COUNTED_SECONDS);
      const granted = PORTION - Math.max(0, used - JOB_LIMITS[this.#what]);
      if (granted <= 0) {
        throw new ServiceError('DOWNLOAD_FAILED', 'the video could not be downloaded', {
          details: EXCEEDED[this.#what],
        });
      }
      this.#left += granted;
    }
    this.#left -= 1;
  }
}

/** Lets one after the other begin, each BEGIN_EVERY_MS after the one before or later. */
class Pace {
  readonly #clock: Clock;
  #nextMs = Number.NEGATIVE_INFINITY;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  turn(): Promise<void> {
    this.#last = this.#last.then(async () => {
      const waitMs = this.#nextMs - this.#clock.nowMs();
      if (waitMs > 0) await this.#clock.sleep(waitMs);
      this.#nextMs = this.#clock.nowMs() + BEGIN_EVERY_MS;
    });
    return this.#last;
  }
}

interface HostShareOptions {
  readonly clock: Clock;
  readonly lease: (request: Omit<LeaseRequest, 'tenant' | 'host'>) => Promise<Leased>;
  readonly onHeld: () => void;
  /** Called once, when it holds nothing any more. */
  readonly onIdle: () => void;
}

/** This process's part of what a key may ask of a host. */
class HostShare {
  readonly #options: HostShareOptions;
  readonly #waiting = new Set<PromiseWithResolvers<void>>();
  readonly #running = new Set<PromiseWithResolvers<void>>();
  #places = 0;
  /** The next request begins between the two, ms of the clock. */
  #nextMs = Number.NEGATIVE_INFINITY;
  #untilMs = Number.NEGATIVE_INFINITY;
  #isServing = false;
  #isHeld = false;
  /** Resolves when a request ends. */
  #ended = Promise.withResolvers<void>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: HostShareOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#renew(), RENEW_MS).unref();
  }

  /** Resolves when a request may begin. @returns to be called once it has ended */
  async enter(signal: AbortSignal): Promise<() => void> {
    const { clock, onHeld } = this.#options;
    const sinceMs = clock.nowMs();
    const turn = Promise.withResolvers<void>();
    this.#waiting.add(turn);
    void this.#serve();
    try {
      await untilAborted(turn.promise, signal);
    } catch (error) {
      this.#waiting.delete(turn);
      this.#leave(turn);
      throw error;
    }
    if (!this.#isHeld && clock.nowMs() - sinceMs >= HELD_MS) {
      this.#isHeld = true;
      onHeld();
    }
    return () => this.#leave(turn);
  }

  #leave(turn: PromiseWithResolvers<void>): void {
    if (!this.#running.delete(turn)) return;
    this.#ended.resolve();
    this.#ended = Promise.withResolvers();
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    const { clock } = this.#options;
    try {
      for (let [turn] = this.#waiting; turn !== undefined; [turn] = this.#waiting) {
        const nowMs = clock.nowMs();
        if (this.#running.size >= this.#places) await this.#findPlace();
        else if (Math.max(nowMs, this.#nextMs) >= this.#untilMs) await this.#lease();
        else if (this.#nextMs > nowMs) await clock.sleep(this.#nextMs - nowMs);
        else {
          this.#waiting.delete(turn);
          this.#running.add(turn);
          this.#nextMs = nowMs + BEGIN_EVERY_MS;
          turn.resolve();
        }
      }
    } catch (error) {
      for (const { reject } of this.#waiting) reject(error);
      this.#waiting.clear();
    } finally {
      this.#isServing = false;
    }
  }

  async #findPlace(): Promise<void> {
    const ended = this.#ended.promise;
    if (this.#places < AT_ONCE) await this.#lease();
    if (this.#running.size < this.#places) return;
    // All that a key may have are here, or others have some.
    await (this.#places < AT_ONCE ? Promise.race([ended, this.#options.clock.sleep(POLL_MS)]) : ended);
  }

  async #lease(): Promise<void> {
    const { clock, lease } = this.#options;
    const isOver = Math.max(clock.nowMs(), this.#nextMs) >= this.#untilMs;
    const beginsMs = isOver ? PORTION * BEGIN_EVERY_MS : 0;
    const busy = this.#running.size;
    const wanted = Math.min(AT_ONCE, busy + this.#waiting.size);
    const { places, waitMs } = await lease({ busy, wanted, beginsMs });
    this.#places = places;
    if (!isOver || places <= busy) return;
    this.#nextMs = Math.max(this.#nextMs, clock.nowMs() + waitMs);
    this.#untilMs = clock.nowMs() + waitMs + beginsMs;
  }

  #renew(): void {
    const { lease, onIdle } = this.#options;
    const busy = this.#running.size;
    const wanted = Math.min(AT_ONCE, busy + this.#waiting.size);
    if (wanted === 0) {
      clearInterval(this.#timer);
      onIdle();
    }
    lease({ busy, wanted, beginsMs: 0 }).then(
      ({ places }) => {
        this.#places = places;
      },
      () => {}, // Repeated; or the lease runs out.
    );
  }
}

/** What a key has left of its limits for streams: at each host that it asks now. */
export interface StreamRequestsLeft {
  readonly perHost: { readonly atOnce: number; readonly perSecond: number };
  readonly perJob: typeof JOB_LIMITS;
  /** The latest first, at most 20. */
  readonly hosts: readonly { readonly host: string; readonly atOnceLeft: number }[];
}

export async function streamRequestsLeft(redis: Redis, tenant: string): Promise<StreamRequestsLeft> {
  const names = await redis.zrevrange(hostsKey(tenant), 0, SHOWN_HOSTS - 1);
  const hosts = await Promise.all(
    names.map(async (host) => {
      const taken = await redis.hvals(leaseKey(tenant, host));
      const places = taken.map((value) => {
        const [held = 0, endsMs = 0] = value.split(' ').map(Number);
        return endsMs > redisNow() ? held : 0;
      });
      return { host, atOnceLeft: Math.max(0, AT_ONCE - places.reduce((sum, held) => sum + held, 0)) };
    }),
  );
  return { perHost: { atOnce: AT_ONCE, perSecond: PER_SECOND }, perJob: JOB_LIMITS, hosts };
}
