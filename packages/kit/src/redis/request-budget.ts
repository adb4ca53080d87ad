/**
 * How long the commands of one request wait for Redis: together as long as one of them may, so that
 * the answer comes within 2 s however many stand in a row (decisions A6).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Command } from 'ioredis';
import { type Deadline, deadline } from 'soundpost-base/deadline';

/** A request that takes longer, such as an upload, has the whole time again. */
const WINDOW_MS = 2000;

const budgets = new AsyncLocalStorage<RequestBudget>();
const limited = new WeakSet<Command>();

/** Only stalls count: a command that is answered within a tenth of the time uses none of it. */
export class RequestBudget {
  readonly #pending = new Set<Command>();
  #limit: Deadline | undefined;
  #leftMs = 0;
  #endsAtMs = Number.NEGATIVE_INFINITY;
  #isOver = false;

  /** Handles the request: what it starts shares this budget. */
  run<Result>(handle: () => Result): Result {
    return budgets.run(this, handle);
  }

  /** For work that requests share: the one that starts it does not pay for the others. */
  static outside<Result>(work: () => Result): Result {
    return budgets.exit(work);
  }

  /** The request is answered: what it has left running waits for itself. */
  end(): void {
    this.#isOver = true;
  }

  /** The caller's, or one for a single command. */
  static current(): RequestBudget {
    const own = budgets.getStore();
    return own === undefined || own.#isOver ? new RequestBudget() : own;
  }

  /** @param ms of the whole budget. A used-up one still sends the command, and does not wait */
  add(command: Command, ms: number): void {
    if (this.#pending.size === 0) this.#wait(ms);
    this.#pending.add(command);
    const end = (): void => {
      if (this.#pending.delete(command) && this.#pending.size === 0) this.#rest();
    };
    command.promise.then(end, end);
  }

  #wait(ms: number): void {
    const nowMs = performance.now();
    if (nowMs >= this.#endsAtMs) {
      this.#endsAtMs = nowMs + WINDOW_MS;
      this.#leftMs = ms;
    }
    const limit = deadline(this.#leftMs, { reason: () => new Error('Command timed out') });
    this.#limit = limit;
    limit.signal.addEventListener('abort', () => {
      const late = [...this.#pending];
      // First: a command that follows a rejected one waits anew.
      this.#pending.clear();
      this.#rest();
      for (const command of late) {
        if (!command.isSettled) command.reject(limit.signal.reason);
      }
    });
  }

  #rest(): void {
    this.#leftMs = Math.max(0, this.#limit?.leftMs ?? 0);
    this.#limit?.[Symbol.dispose]();
  }
}

/**
 * Counts from the first sending, also while disconnected. ioredis' own deadline fires in busy
 * processes.
 */
export function giveDeadline(command: Command, ms: number): void {
  if (limited.has(command)) return;
  limited.add(command);
  RequestBudget.current().add(command, ms);
}
