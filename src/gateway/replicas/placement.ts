/**
 * Which instances and duties this process has. It renews its lease, takes what nobody has, as far as it is its share, and lets
 * everything go before the lease can have run out: the time counts from when the renewal was asked for, by this process'
 * own clocks.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from '../../logger.ts';
import type { Hold } from './hold.ts';
import { type HoldListener, Holds } from './holds.ts';
import { isDeadNeighbour } from './home.ts';
import { LeaseClock, thisMoment } from './lease-clock.ts';
import type { Overview, Ownership, Place } from './ownership.ts';

export interface LeaseTiming {
  /** How long a replica may be silent before others take what it has, ms. */
  readonly leaseMs: number;
  /** How often it renews its lease and looks for what nobody has, ms. */
  readonly lookMs: number;
  /** So long before its lease can end a replica acts for nothing any more, ms. */
  readonly marginMs: number;
}

const usual: LeaseTiming = { leaseMs: 10_000, lookMs: 1000, marginMs: 2000 };

export interface PlacementOptions {
  readonly ownership: Ownership;
  readonly duties: readonly string[];
  /** See home.ts. */
  readonly home: string;
  readonly timing?: Partial<LeaseTiming> | undefined;
  readonly logger: Logger;
}

/** Where an instance is: here, with another replica, or nowhere yet. */
export type Whereabouts = 'here' | { readonly holder: string; readonly place: Place } | undefined;

export class Placement {
  readonly #options: PlacementOptions;
  readonly #timing: LeaseTiming;
  readonly #clock: LeaseClock;
  readonly #holds: Holds;
  readonly #closing = new AbortController();
  readonly #begun = Promise.withResolvers<void>();
  #url = '';
  /** Of the present lease; empty while there is none. */
  #id = '';
  #previous = '';
  #freeBefore: ReadonlySet<string> = new Set();
  #isResting = false;
  #running: Promise<void> | undefined;
  #isFailing = false;

  constructor(options: PlacementOptions) {
    this.#options = options;
    this.#timing = { ...usual, ...options.timing };
    this.#holds = new Holds(options.duties);
    const { leaseMs, marginMs } = this.#timing;
    this.#clock = new LeaseClock(leaseMs - marginMs, () => this.#expire());
  }

  /** Resolves when this replica has what is its own for the first time. @param url where other replicas reach it */
  async start(url: string, listener: HoldListener): Promise<void> {
    this.#url = url;
    this.#holds.listener = listener;
    await this.#look();
    this.#begun.resolve();
    this.#running = this.#run();
  }

  /** Takes nothing more, and keeps what it has. */
  rest(): void {
    this.#isResting = true;
  }

  /** Lets everything go at once; others need not wait for the lease to run out. */
  async close(): Promise<void> {
    this.rest();
    this.#closing.abort();
    this.#clock.stop();
    await this.#running;
    const id = this.#id || this.#previous;
    this.#id = '';
    await this.#options.ownership
      .end(id)
      .catch((error: unknown) => this.#options.logger.warn({ err: error }, 'the lease was not given back'));
  }

  /** Undefined while this process must not act for it. */
  holdOf(what: string): Hold | undefined {
    return this.#holds.get(what);
  }

  /** Who has it. Takes it where nobody does. */
  async locate(what: string): Promise<Whereabouts> {
    await this.#begun.promise;
    if (this.holdOf(what) !== undefined) {
      return 'here';
    }
    const found = await this.#options.ownership.locate(what);
    if (found === undefined) {
      return (await this.claim(what)) === undefined ? undefined : 'here';
    }
    if (found.place.id !== this.#id) {
      return found;
    }
    // It was taken, and the answer was lost.
    return this.#add(what, found.holder)?.isGood ? 'here' : undefined;
  }

  /** Whether it is still held as it was located. Takes nothing. */
  async isHeldBy(what: string, holder: string): Promise<boolean> {
    return (await this.#options.ownership.locate(what))?.holder === holder;
  }

  /** Takes it where nobody has it. */
  async claim(what: string): Promise<Hold | undefined> {
    const known = this.holdOf(what);
    const id = this.#id;
    if (known !== undefined || id === '' || this.#isResting) {
      return known;
    }
    const holder = await this.#options.ownership.take(id, what);
    return holder === undefined ? undefined : this.#add(what, holder);
  }

  /** Resolves as soon as this replica has the duty, with what is aborted when it is lost; rejects with the signal's reason. */
  onDuty(duty: string, signal: AbortSignal): Promise<AbortSignal> {
    return this.#holds.onDuty(duty, signal);
  }

  /** Gives one back, for what is no more. */
  release(what: string): Promise<void> {
    return this.#holds.giveBack(what, (hold) => this.#options.ownership.release(what, hold.holder));
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await wait(this.#timing.lookMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) {
        return;
      }
      await this.#look().then(
        () => this.#note(undefined),
        (error: unknown) => this.#note(error),
      );
    }
  }

  /** A Redis that is away is told once. */
  #note(error: unknown): void {
    if (error !== undefined && !this.#isFailing) {
      this.#options.logger.warn({ err: error }, 'the lease of this replica could not be renewed');
    }
    this.#isFailing = error !== undefined;
  }

  async #look(): Promise<void> {
    const { ownership } = this.#options;
    const { leaseMs } = this.#timing;
    this.#expire();
    let askedAt = thisMoment();
    let overview = this.#id === '' ? undefined : await ownership.renew(this.#id, leaseMs);
    if (overview === undefined) {
      this.#loseAll();
      const place: Place = { id: randomUUID(), url: this.#url, home: this.#options.home };
      askedAt = thisMoment();
      overview = await ownership.begin(place, leaseMs, this.#previous);
      this.#previous = place.id;
      this.#id = place.id;
    }
    this.#clock.extend(askedAt);
    this.#holds.retain(overview.own, askedAt.monotonic);
    for (const [what, holder] of overview.own) {
      this.#add(what, holder);
    }
    if (await this.#bury(overview.living)) {
      await this.#look();
    } else {
      await this.#takeShare(overview);
    }
  }

  #expire(): void {
    if (this.#id !== '' && !this.#clock.lasts()) {
      this.#options.logger.warn('the lease of this replica ran out; its instances go to whoever takes them');
      this.#loseAll();
    }
  }

  #loseAll(): void {
    this.#id = '';
    this.#holds.loseAll();
  }

  /** What a process of this machine had that is no more need not wait for the end of its lease. @returns whether there was one */
  async #bury(living: readonly Place[]): Promise<boolean> {
    let found = false;
    for (const { id, home } of living) {
      if (id !== this.#id && (await isDeadNeighbour(home))) {
        this.#options.logger.info({ replica: id }, 'a replica of this machine has died');
        await this.#options.ownership.end(id);
        found = true;
      }
    }
    return found;
  }

  async #takeShare({ living, own, free, instances }: Overview): Promise<void> {
    const { duties } = this.#options;
    const had = [...own.keys()].filter((what) => !duties.includes(what)).length;
    let room = Math.ceil(instances / living.length) - had;
    // Thousands take longer than the lease lasts: it is renewed in between.
    const endsAt = performance.now() + this.#timing.lookMs;
    for (const what of shuffled(free)) {
      if (performance.now() > endsAt) {
        return;
      }
      // What was free before as well is not taken by those whose share it would be.
      if (duties.includes(what) || room > 0 || this.#freeBefore.has(what)) {
        const hold = await this.claim(what);
        room -= hold === undefined || duties.includes(what) ? 0 : 1;
      }
    }
    this.#freeBefore = new Set(free);
  }

  #add(what: string, holder: string): Hold | undefined {
    const id = this.#id;
    const isOwn = id !== '' && holder.endsWith(` ${id}`);
    const isValid = (): boolean => this.#id === id && this.#clock.lasts();
    return isOwn ? this.#holds.add({ what, holder, isValid }) : undefined;
  }
}

/** So that replicas which look at the same moment do not all reach for the same. */
function shuffled<T>(values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, at: Math.random() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ value }) => value);
}
