/** Many who watch one thing read it once a change. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Answers all who ask within one turn of the event loop with one reading, which begins after they asked. */
export class SharedReads<Value> {
  readonly #waiting = new Map<string, Promise<Value>>();

  /** @param read by which of the askers' functions it is read does not matter */
  read(id: string, read: () => Promise<Value>): Promise<Value> {
    const shared = this.#waiting.get(id) ?? this.#soon(id, read);
    this.#waiting.set(id, shared);
    return shared;
  }

  async #soon(id: string, read: () => Promise<Value>): Promise<Value> {
    await nextTurn();
    this.#waiting.delete(id);
    return read();
  }
}
