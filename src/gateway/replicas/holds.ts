/** What this replica has at present, and who is to be told of it. */
import { EventEmitter, once } from 'node:events';
import { Hold, type HoldOptions } from './hold.ts';

/** Told of instances; duties are waited for. */
export interface HoldListener {
  taken(hold: Hold): void;
  lost(hold: Hold): void;
}

export class Holds {
  readonly #duties: readonly string[];
  readonly #held = new Map<string, Hold>();
  readonly #takenAt = new WeakMap<Hold, number>();
  /** Being given back. */
  readonly #leaving = new Set<string>();
  /** Emits a duty when it was taken. */
  readonly #taken = new EventEmitter().setMaxListeners(0);
  listener: HoldListener | undefined;

  constructor(duties: readonly string[]) {
    this.#duties = duties;
  }

  /** Undefined while this process must not act for it. */
  get(what: string): Hold | undefined {
    const hold = this.#held.get(what);
    return hold?.isGood ? hold : undefined;
  }

  /** Undefined while it is being given back. The same again changes nothing. */
  add(options: HoldOptions): Hold | undefined {
    const { what, holder } = options;
    const known = this.#held.get(what);
    if (this.#leaving.has(what)) {
      return undefined;
    }
    if (known?.holder === holder) {
      return known;
    }
    known?.lose();
    const hold = new Hold(options);
    this.#held.set(what, hold);
    this.#takenAt.set(hold, performance.now());
    hold.lost.addEventListener('abort', () => this.#dropped(hold), { once: true });
    if (this.#duties.includes(what)) {
      this.#taken.emit(what);
    } else {
      this.listener?.taken(hold);
    }
    return hold;
  }

  /**
   * Loses what Redis does not know to be held: after a fall-back to a copy of it that is older, another may have it.
   * @param askedAt of what was taken since, Redis could not know yet
   */
  retain(own: ReadonlyMap<string, string>, askedAt: number): void {
    for (const [what, hold] of this.#held) {
      if (own.get(what) !== hold.holder && (this.#takenAt.get(hold) ?? 0) < askedAt) {
        hold.lose();
      }
    }
  }

  loseAll(): void {
    for (const hold of this.#held.values()) {
      hold.lose();
    }
  }

  /** Nobody is told. */
  async giveBack(what: string, release: (hold: Hold) => Promise<void>): Promise<void> {
    const hold = this.#held.get(what);
    if (hold === undefined) {
      return;
    }
    this.#leaving.add(what);
    this.#held.delete(what);
    try {
      await release(hold);
    } finally {
      this.#leaving.delete(what);
    }
  }

  /** Resolves as soon as this process has the duty, with what is aborted when it is lost; rejects with the signal's reason. */
  async onDuty(duty: string, signal: AbortSignal): Promise<AbortSignal> {
    for (;;) {
      const hold = this.get(duty);
      if (hold !== undefined) {
        return hold.lost;
      }
      await once(this.#taken, duty, { signal }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error;
      });
    }
  }

  #dropped(hold: Hold): void {
    if (this.#held.get(hold.what) === hold) {
      this.#held.delete(hold.what);
    }
    if (!this.#duties.includes(hold.what)) {
      this.listener?.lost(hold);
    }
  }
}
