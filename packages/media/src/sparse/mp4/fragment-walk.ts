/**
 * The boxes behind the movie box of a fragmented file (ISO/IEC 14496-12 section 8.8), read whole
 * except media data. ffmpeg goes from box to box; so does this, from all indexed positions at once.
 */
import { type Box, boxHeader, MAX_HEADER_BYTES, UnsupportedLayout } from './boxes.ts';
import { MFRO_BYTES, mfraBytes, placesOfMfra, placesOfSidx } from './fragment-index.ts';
import { type ByteSource, MAX_OTHER_BYTES, NOT_READ } from './top-level.ts';

export interface Fragment {
  /** Where the box begins. */
  readonly at: number;
  readonly payload: Uint8Array;
}

/** Three hours in fragments of half a second, of up to eight boxes each. */
const MAX_BOXES = 200_000;

/** A fragment of two seconds has 1 to 2 KB besides its samples. */
const MAX_READ_BYTES = 32 * 1024 * 1024;

/** Bytes to read at a position: about what its fragment's boxes take, going by earlier ones. */
const GUESS = { least: 2 * 1024, most: 64 * 1024 };

/** Random access tables of ten minutes in fragments of two seconds. */
const TAIL_BYTES = 16 * 1024;

/** Without an index each fragment takes a round trip: so many before checking if that pays. */
const FREE_ROUNDS = 8;
/** Share of the time that the skipped bytes would have taken; the audio itself comes on top. */
const MOST_EFFORT = 0.5;

/** A position that the walk has reached, and the bytes read after it. */
interface Place {
  at: number;
  bytes: Uint8Array;
  /** How far its next box has to be read, if known. */
  wantedEnd: number | undefined;
}

/**
 * @param from where the movie box ends
 * @returns all movie fragment boxes in the order of the file
 * @throws UnsupportedLayout, also if it would take as long as reading all; what the source throws
 */
export async function readFragments(source: ByteSource, from: number): Promise<readonly Fragment[]> {
  const walk = new Walk(source.sizeBytes, from);
  for (let rounds = 0; !walk.isOver; rounds += 1) {
    const effort = rounds * source.roundTripBytes + walk.readBytes;
    if (rounds > FREE_ROUNDS && effort > MOST_EFFORT * walk.passedBytes)
      throw new UnsupportedLayout('fragments too short to be looked up one by one');
    // The first box is behind the movie box, and may already be there.
    const tail = rounds === 1 ? [walk.tail] : [];
    const chunks = await source.readEach([...walk.wanted(), ...tail]);
    if (chunks === undefined) throw new UnsupportedLayout('little would be gained');
    walk.go(chunks.slice(0, chunks.length - tail.length));
    for (const bytes of chunks.slice(chunks.length - tail.length)) walk.addTail(bytes);
  }
  return walk.fragments();
}

class Walk {
  readonly #sizeBytes: number;
  readonly #from: number;
  /** Where boxes begin, or have to. */
  readonly #begun = new Set<number>();
  readonly #boxes: { readonly start: number; readonly end: number }[] = [];
  readonly #fragments: Fragment[] = [];
  #places: Place[] = [];
  #guessBytes = GUESS.least;
  readBytes = 0;
  passedBytes = 0;

  constructor(sizeBytes: number, from: number) {
    this.#sizeBytes = sizeBytes;
    this.#from = from;
    this.#begin(from, from + GUESS.most);
  }

  get isOver(): boolean {
    return this.#places.length === 0;
  }

  /** What to read next, a stretch for each position. @throws UnsupportedLayout if too much */
  wanted(): { start: number; end: number }[] {
    const wanted = this.#places.map(({ at, bytes, wantedEnd = at + this.#guessBytes }) => ({
      start: at + bytes.length,
      end: Math.min(wantedEnd, this.#sizeBytes),
    }));
    const bytes = wanted.reduce((sum, { start, end }) => sum + end - start, this.readBytes);
    if (bytes > MAX_READ_BYTES) throw new UnsupportedLayout(`fragments of more than ${MAX_READ_BYTES} bytes`);
    return wanted;
  }

  get tail(): { start: number; end: number } {
    return { start: Math.max(this.#from, this.#sizeBytes - TAIL_BYTES), end: this.#sizeBytes };
  }

  /** Continues from each position. @param chunks the wanted bytes. @throws UnsupportedLayout */
  go(chunks: readonly Uint8Array[]): void {
    const places = this.#places.slice(0, chunks.length);
    this.#places = this.#places.slice(chunks.length);
    for (const [nth, place] of places.entries()) {
      const chunk = chunks[nth] ?? new Uint8Array();
      this.readBytes += chunk.length;
      place.bytes = place.bytes.length === 0 ? chunk : Buffer.concat([place.bytes, chunk]);
      if (this.#goOn(place)) this.#places.push(place);
    }
  }

  /** The end of the file: may hold random access tables. @throws UnsupportedLayout */
  addTail(bytes: Uint8Array): void {
    this.readBytes += bytes.length;
    const length = mfraBytes(bytes) ?? 0;
    const at = this.#sizeBytes - length;
    if (length <= MFRO_BYTES || at < this.#from || length > MAX_OTHER_BYTES || this.#begun.has(at)) return;
    this.#count(at);
    const isThere = length <= bytes.length;
    const place = {
      at,
      bytes: isThere ? bytes.subarray(-length) : new Uint8Array(),
      wantedEnd: this.#sizeBytes,
    };
    if (!isThere || this.#goOn(place)) this.#places.push(place);
  }

  /** @throws UnsupportedLayout unless the boxes are one after another, to the end of the file */
  fragments(): readonly Fragment[] {
    let reached = this.#from;
    for (const { start, end } of this.#boxes.sort((a, b) => a.start - b.start)) {
      if (start !== reached) throw new UnsupportedLayout('boxes that do not lie where an index says');
      reached = end;
    }
    return this.#fragments.sort((a, b) => a.at - b.at);
  }

  #begin(at: number, wantedEnd?: number): void {
    if (at < this.#from || at > this.#sizeBytes)
      throw new UnsupportedLayout('an index that leads out of the file');
    if (at === this.#sizeBytes || this.#begun.has(at)) return;
    this.#count(at);
    this.#places.push({ at, bytes: new Uint8Array(), wantedEnd });
  }

  #count(at: number): void {
    this.#begun.add(at);
    if (this.#begun.size > MAX_BOXES) throw new UnsupportedLayout(`more than ${MAX_BOXES} boxes`);
  }

  /** @returns whether to read more there; false at the end, or where the walk has been */
  #goOn(place: Place): boolean {
    for (;;) {
      const box = this.#readBox(place);
      if (box === undefined) return true;
      const end = place.at + box.sizeBytes;
      this.#boxes.push({ start: place.at, end });
      this.passedBytes += box.sizeBytes;
      if (!NOT_READ.has(box.type)) this.#take(box, place.at, end);
      place.bytes = place.bytes.subarray(Math.min(box.sizeBytes, place.bytes.length));
      place.at = end;
      if (end === this.#sizeBytes || this.#begun.has(end)) return false;
      this.#count(end);
      // Media data follow a fragment's box: only their header is read.
      place.wantedEnd = box.type === 'moof' ? end + MAX_HEADER_BYTES : undefined;
    }
  }

  /** @returns the box, with its payload if that is read; undefined if too few bytes are there */
  #readBox(place: Place): (Box & { sizeBytes: number }) | undefined {
    const { at, bytes } = place;
    if (bytes.length < Math.min(MAX_HEADER_BYTES, this.#sizeBytes - at)) return undefined;
    const { type, headerBytes, sizeBytes } = boxHeader(bytes.subarray(0, MAX_HEADER_BYTES));
    const end = sizeBytes === null ? this.#sizeBytes : at + sizeBytes;
    if (end > this.#sizeBytes) throw new UnsupportedLayout(`box ${type} goes beyond the end of the file`);
    if (type === 'moov') throw new UnsupportedLayout('two movie boxes');
    if (NOT_READ.has(type)) return { type, sizeBytes: end - at, payload: new Uint8Array() };
    if (end - at > MAX_OTHER_BYTES) throw new UnsupportedLayout(`a box ${type} of ${end - at} bytes`);
    if (bytes.length >= end - at)
      return { type, sizeBytes: end - at, payload: bytes.subarray(headerBytes, end - at) };
    place.wantedEnd = end + (type === 'moof' ? MAX_HEADER_BYTES : this.#guessBytes);
    return undefined;
  }

  #take(box: Box & { sizeBytes: number }, at: number, end: number): void {
    if (box.type === 'moof') {
      this.#fragments.push({ at, payload: box.payload });
      const likely = Math.ceil(box.sizeBytes * 1.25) + MAX_HEADER_BYTES;
      this.#guessBytes = Math.min(GUESS.most, Math.max(this.#guessBytes, likely));
    }
    const places =
      box.type === 'sidx' ? placesOfSidx(box, end) : box.type === 'mfra' ? placesOfMfra(box) : [];
    // The walk itself goes on at the box's end, with the bytes read of it.
    for (const place of places) if (place !== end) this.#begin(place);
  }
}
