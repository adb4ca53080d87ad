/**
 * The order in which an instance's messages go out. Requests are prepared side by side, but each hands its message to the
 * network only when those that joined before it are through, whatever they took and however they ended.
 */
import { untilAborted } from 'soundpost-base/deadline';

export interface Turn {
  /** Resolves when it is this one's turn; rejects with the signal's reason. */
  come(signal: AbortSignal): Promise<void>;
  /** Lets the next one go. Has to be called whatever happened. */
  leave(): void;
}

export class OutgoingOrder {
  /** What the next one of an instance waits for. */
  readonly #last = new Map<string, Promise<void>>();

  /** Takes a place in the line, in the order of the calls. */
  join(instanceId: string): Turn {
    const before = this.#last.get(instanceId) ?? Promise.resolve();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    // Whoever leaves early does not let anybody past those that are still before it.
    const through = before.then(() => left);
    this.#last.set(instanceId, through);
    void through.then(() => {
      if (this.#last.get(instanceId) === through) {
        this.#last.delete(instanceId);
      }
    });
    return { come: (signal) => untilAborted(before, signal), leave };
  }
}
