/** How a webhook endpoint answers that fails at random, and what it saw that must not be. */
import type { HookAnswer, HookCall } from './hook-receiver.ts';

/** More in a row would use up a schedule of ten tries now and then, by chance. */
const MOST_FAILURES = 6;

/** A date has whole seconds, so it asks for between two and three. */
const RETRY_AFTER_SECONDS = 3;

/** Workers time by Redis' clock, which they know to half of what its answer took; one that took more than a second they do not take. */
const CLOCKS_DIFFER_MS = 500;

export interface MoodyOptions {
  readonly random: () => number;
  /** Part of the calls that fail, 0 to 1. */
  readonly failing: number;
  /** How many calls are never answered: each takes the worker 15 s. */
  readonly silent: number;
  /** Where redirects lead. */
  readonly elsewhere: string;
}

export class MoodyEndpoint {
  readonly faults: string[] = [];
  /** Calls by what was done to them. */
  readonly counts: Record<string, number> = {};
  readonly #options: MoodyOptions;
  readonly #failures = new Map<string, number>();
  readonly #restsUntil = new Map<string, number>();
  #silent = 0;

  constructor(options: MoodyOptions) {
    this.#options = options;
  }

  answer({ id, atMs, json }: HookCall): HookAnswer {
    const restsUntil = this.#restsUntil.get(id) ?? 0;
    if (atMs < restsUntil - CLOCKS_DIFFER_MS) {
      this.faults.push(`${json.event} of ${json.jobId} came ${restsUntil - atMs} ms before its Retry-After`);
    }
    const failures = this.#failures.get(id) ?? 0;
    const { random, failing } = this.#options;
    if (random() >= failing || failures >= MOST_FAILURES) return this.#count('taken', 204);
    this.#failures.set(id, failures + 1);
    return this.#fail(id);
  }

  #fail(id: string): HookAnswer {
    const { random, silent, elsewhere } = this.#options;
    if (this.#silent < silent) {
      this.#silent += 1;
      return this.#count('silent', 'silent');
    }
    switch (Math.floor(random() * 5)) {
      case 0:
        return this.#count('500', 500);
      case 1:
        return this.#count('cut', 'cut');
      case 2:
        return this.#count('302', { status: 302, headers: { location: elsewhere } });
      case 3:
        this.#restsUntil.set(id, Date.now() + RETRY_AFTER_SECONDS * 1000);
        return this.#count('429', { status: 429, headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } });
      default: {
        const until = new Date(Date.now() + RETRY_AFTER_SECONDS * 1000);
        until.setMilliseconds(0);
        this.#restsUntil.set(id, until.getTime());
        return this.#count('503', { status: 503, headers: { 'retry-after': until.toUTCString() } });
      }
    }
  }

  #count(what: string, answer: HookAnswer): HookAnswer {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
    return answer;
  }
}
