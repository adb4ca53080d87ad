/** The fields of a box one after another, for boxes in which flags say which of them are there. */
import { type Box, UnsupportedLayout, viewOf } from './boxes.ts';

export class Fields {
  readonly #box: Box;
  readonly #view: DataView;
  #at = 0;

  constructor(box: Box) {
    this.#box = box;
    this.#view = viewOf(box.payload);
  }

  /** Bytes read so far. */
  get at(): number {
    return this.#at;
  }

  /** @throws UnsupportedLayout when the box ends before, as all of these */
  unsigned16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  unsigned32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  signed32(): number {
    return this.#view.getInt32(this.#take(4));
  }

  /** What is too large to be exact is far outside of any file. */
  unsigned64(): number {
    return Number(this.#view.getBigUint64(this.#take(8)));
  }

  #take(bytes: number): number {
    const { type, payload } = this.#box;
    const at = this.#at;
    if (payload.length - at < bytes) throw new UnsupportedLayout(`box ${type} breaks off`);
    this.#at += bytes;
    return at;
  }
}
