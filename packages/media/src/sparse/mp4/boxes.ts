/** Boxes of ISO/IEC 14496-12 section 4.2, read from memory. */

/** This module does not know the file's layout: it has to be read whole, and may be good. */
export class UnsupportedLayout extends Error {
  override readonly name = 'UnsupportedLayout';
}

interface BoxHeader {
  /** Four characters, latin1. */
  readonly type: string;
  readonly headerBytes: 8 | 16;
  /** With the header; null for a box that goes up to the end of the file. */
  readonly sizeBytes: number | null;
}

/** The longest header: 32-bit size, type, 64-bit size. */
export const MAX_HEADER_BYTES = 16;

/** @throws UnsupportedLayout when the bytes are too few for a header, or the size cannot be one */
export function boxHeader(bytes: Uint8Array): BoxHeader {
  if (bytes.length < 8) throw new UnsupportedLayout('a box breaks off in its header');
  const view = viewOf(bytes);
  const size = view.getUint32(0);
  const type = latin1(bytes, 4);
  if (size === 0) return { type, headerBytes: 8, sizeBytes: null };
  if (size !== 1) {
    if (size < 8) throw new UnsupportedLayout(`box ${type} of ${size} bytes`);
    return { type, headerBytes: 8, sizeBytes: size };
  }
  if (bytes.length < MAX_HEADER_BYTES) throw new UnsupportedLayout('a box breaks off in its header');
  const large = view.getBigUint64(8);
  if (large < 16n || large > BigInt(Number.MAX_SAFE_INTEGER))
    throw new UnsupportedLayout(`box ${type} of ${large} bytes`);
  return { type, headerBytes: 16, sizeBytes: Number(large) };
}

export interface Box {
  readonly type: string;
  readonly payload: Uint8Array;
}

/** More boxes in one box than any program writes. */
const MAX_CHILDREN = 4_096;

/**
 * The boxes inside a box. Up to seven bytes may remain: QuickTime ends lists with a zero word.
 * @throws UnsupportedLayout when a box does not fit
 */
export function childrenOf(payload: Uint8Array): Box[] {
  const boxes: Box[] = [];
  for (let at = 0; payload.length - at >= 8; ) {
    const { type, headerBytes, sizeBytes } = boxHeader(payload.subarray(at, at + MAX_HEADER_BYTES));
    if (sizeBytes === null || sizeBytes > payload.length - at)
      throw new UnsupportedLayout(`box ${type} does not fit`);
    if (boxes.length === MAX_CHILDREN) throw new UnsupportedLayout(`more than ${MAX_CHILDREN} boxes in one`);
    boxes.push({ type, payload: payload.subarray(at + headerBytes, at + sizeBytes) });
    at += sizeBytes;
  }
  return boxes;
}

/** The only such box, or undefined. @throws UnsupportedLayout for two: which counts is disputed */
export function onlyBox(boxes: readonly Box[], ...types: readonly string[]): Box | undefined {
  const found = boxes.filter(({ type }) => types.includes(type));
  if (found.length > 1)
    throw new UnsupportedLayout(`box ${types.join(' or ')} stands there ${found.length} times`);
  return found[0];
}

/** @throws UnsupportedLayout when it is not there */
export function requiredBox(boxes: readonly Box[], ...types: readonly string[]): Box {
  const box = onlyBox(boxes, ...types);
  if (box === undefined) throw new UnsupportedLayout(`no box ${types.join(' or ')}`);
  return box;
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function latin1(bytes: Uint8Array, at: number): string {
  return Buffer.from(bytes.subarray(at, at + 4)).toString('latin1');
}

// Tables of a full box (ISO/IEC 14496-12 section 4.2: version and flags first), whose row count has
// to fit the box.

/** Two hours of audio in packets of 21 ms: 0.34 million samples, and chunks if each has its own. */
export const MAX_ROWS = 4_000_000;

interface Table {
  readonly rows: number;
  readonly view: DataView;
  /** Where the first row begins. */
  readonly at: number;
}

/**
 * A box that holds its row count and rows of one size.
 * @param headBytes where the count is: after version, flags and what else precedes it
 * @param rowBits of one row
 * @param betweenBytes bytes between the count and the first row
 * @throws UnsupportedLayout when there are too many rows, or fewer than it says
 */
export function tableOf({ type, payload }: Box, rowBits: number, headBytes = 4, betweenBytes = 0): Table {
  const view = viewOf(payload);
  const at = headBytes + 4 + betweenBytes;
  if (payload.length < at) throw new UnsupportedLayout(`box ${type} breaks off`);
  const rows = view.getUint32(headBytes);
  if (rows > MAX_ROWS) throw new UnsupportedLayout(`box ${type} has ${rows} rows`);
  if (Math.ceil((rows * rowBits) / 8) > payload.length - at) {
    throw new UnsupportedLayout(`box ${type} does not hold its ${rows} rows`);
  }
  return { rows, view, at };
}

// The fields of a box one after another, for boxes in which flags say which of them are there.

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

  /** A value that is too large to be exact is far outside of any file. */
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
