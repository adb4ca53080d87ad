/**
 * Reads the elements of a Matroska segment (RFC 9559) whole except blocks, of which the header
 * gives the track and the end. All clusters are walked at the same time, block by block.
 */
import { UnsupportedLayout } from '../mp4/boxes.ts';
import type { ByteSource } from '../mp4/top-level.ts';
import {
  elementHeader,
  elementsAt,
  IDS,
  MAX_ELEMENT_HEADER_BYTES,
  unsignedOf,
  variableInteger,
} from './elements.ts';

/** Where the blocks of a track are, in no order. */
export interface Blocks {
  readonly starts: number[];
  readonly ends: number[];
}

interface MatroskaTrack {
  readonly number: number;
  readonly isAudio: boolean;
  readonly blocks: Blocks;
}

/** A block's header: track number of up to eight bytes, time and flags. */
const PEEK_BYTES = MAX_ELEMENT_HEADER_BYTES + 11;
const MAX_ELEMENT_BYTES = 8 * 1024 * 1024;
/** Two hours have half a million blocks of audio and 0.2 million pictures. */
const MAX_BLOCKS = 4_000_000;
/** A day in clusters of five seconds. */
const MAX_CLUSTERS = 20_000;
const MAX_TRACKS = 64;
/** Read at the same time, and kept in memory until then. */
const MAX_ROUND_BYTES = 32 * 1024 * 1024;

/** Bytes to read behind a block: the audio up to the next picture, two or three blocks. */
const GUESS = { first: 1100, least: 512, most: 8192, blocks: 3 };

/** Ranges (clusters begin with their largest pictures) and rounds before checking if it pays. */
const FREE = { ranges: 64, rounds: 4 };
/** Share of the time that the bytes would have taken; the rest of the audio comes on top. */
const MOST_EFFORT = 0.5;

interface Place {
  at: number;
  bytes: Uint8Array;
  wantedEnd: number;
  /** Ends of the elements around it: a cluster, a group of blocks. */
  readonly ends: number[];
}

/**
 * @param from where the content of the segment begins
 * @throws UnsupportedLayout, also if it would take as long as reading all; what the source throws
 */
export async function readBlocks(source: ByteSource, from: number): Promise<readonly MatroskaTrack[]> {
  const walk = new BlockWalk(source.sizeBytes, from);
  let ranges = 0;
  let since: { rounds: number; effort: number; passedBytes: number } | undefined;
  for (let rounds = 0; !walk.isOver; rounds += 1) {
    const wanted = walk.wanted();
    const effort = walk.readBytes + ranges * source.rangeBytes;
    if (ranges > FREE.ranges) since ??= { rounds, effort, passedBytes: walk.passedBytes };
    const isSlow =
      since !== undefined &&
      rounds - since.rounds >= FREE.rounds &&
      effort - since.effort > MOST_EFFORT * (walk.passedBytes - since.passedBytes);
    const isLong = rounds * source.roundTripBytes > MOST_EFFORT * source.sizeBytes;
    if (isSlow || isLong) throw new UnsupportedLayout('blocks too short to be looked up one by one');
    const chunks = await source.readEach(wanted);
    if (chunks === undefined) throw new UnsupportedLayout('little would be gained');
    walk.go(chunks);
    ranges += chunks.length;
  }
  return walk.tracks();
}

class BlockWalk {
  readonly #sizeBytes: number;
  readonly #from: number;
  readonly #begun = new Set<number>();
  /** On the segment's own level. */
  readonly #elements: { readonly start: number; readonly end: number }[] = [];
  readonly #tracks = new Map<number, MatroskaTrack>();
  #places: Place[] = [];
  #guessBytes = GUESS.first;
  #blocks = 0;
  readBytes = 0;
  passedBytes = 0;

  constructor(sizeBytes: number, from: number) {
    this.#sizeBytes = sizeBytes;
    this.#from = from;
    this.#begin(from, from + 16 * 1024);
  }

  get isOver(): boolean {
    return this.#places.length === 0;
  }

  /** @throws UnsupportedLayout when that is too much */
  wanted(): { start: number; end: number }[] {
    const wanted = this.#places.map(({ at, bytes, wantedEnd }) => ({
      start: at + bytes.length,
      end: Math.min(wantedEnd, this.#sizeBytes),
    }));
    const bytes = wanted.reduce((sum, { start, end }) => sum + end - start, 0);
    if (bytes > MAX_ROUND_BYTES)
      throw new UnsupportedLayout(`more than ${MAX_ROUND_BYTES} bytes at the same time`);
    return wanted;
  }

  /** @param chunks the wanted bytes. @throws UnsupportedLayout */
  go(chunks: readonly Uint8Array[]): void {
    const places = this.#places;
    this.#places = [];
    for (const [nth, place] of places.entries()) {
      const chunk = chunks[nth] ?? new Uint8Array();
      this.readBytes += chunk.length;
      place.bytes = place.bytes.length === 0 ? chunk : Buffer.concat([place.bytes, chunk]);
      if (this.#goOn(place)) this.#places.push(place);
    }
  }

  /** @throws UnsupportedLayout unless the elements that were found lie one after another */
  tracks(): readonly MatroskaTrack[] {
    let reached = this.#from;
    for (const { start, end } of this.#elements.sort((a, b) => a.start - b.start)) {
      if (start !== reached) throw new UnsupportedLayout('elements that do not lie where cues say');
      reached = end;
    }
    return [...this.#tracks.values()];
  }

  #begin(at: number, wantedEnd = at + this.#guessBytes): void {
    if (at < this.#from || at > this.#sizeBytes)
      throw new UnsupportedLayout('cues that lead out of the file');
    if (at === this.#sizeBytes || this.#begun.has(at)) return;
    this.#count(at);
    this.#places.push({ at, bytes: new Uint8Array(), wantedEnd, ends: [] });
  }

  #count(at: number): void {
    this.#begun.add(at);
    if (this.#begun.size > MAX_CLUSTERS) throw new UnsupportedLayout(`more than ${MAX_CLUSTERS} clusters`);
  }

  /** @returns whether to read more there; false at the end, or where the walk has been */
  #goOn(place: Place): boolean {
    for (;;) {
      const wantedEnd = this.#next(place);
      if (wantedEnd !== undefined) {
        place.wantedEnd = wantedEnd;
        return true;
      }
      while (place.ends.at(-1) === place.at) place.ends.pop();
      if (place.ends.length > 0) continue;
      if (place.at === this.#sizeBytes || this.#begun.has(place.at)) return false;
      this.#count(place.at);
    }
  }

  /** One element further. @returns up to where it has to be read first, if so */
  #next(place: Place): number | undefined {
    const { at, bytes, ends } = place;
    const limit = ends.at(-1) ?? this.#sizeBytes;
    if (bytes.length < Math.min(PEEK_BYTES, limit - at)) return at + Math.max(PEEK_BYTES, this.#guessBytes);
    const header = elementHeader(bytes.subarray(0, MAX_ELEMENT_HEADER_BYTES));
    if (header.payloadBytes === null) throw new UnsupportedLayout('an element of unknown size');
    const end = at + header.headerBytes + header.payloadBytes;
    if (end > limit)
      throw new UnsupportedLayout(`element ${header.id.toString(16)} goes beyond what it lies in`);
    const isInside = ends.length > 0;
    const wantedEnd = this.#step(place, header, end, isInside);
    if (wantedEnd === undefined && !isInside) this.#elements.push({ start: at, end });
    return wantedEnd;
  }

  /** Goes into the element or behind it. @returns up to where it has to be read first, if so */
  #step(
    place: Place,
    header: ReturnType<typeof elementHeader>,
    end: number,
    isInside: boolean,
  ): number | undefined {
    const { id, headerBytes } = header;
    if (id === IDS.cluster && !isInside) {
      this.#begin(end);
      place.ends.push(end);
      this.#advance(place, place.at + headerBytes);
    } else if (id === IDS.blockGroup && place.ends.length === 1) {
      place.ends.push(end);
      this.#advance(place, place.at + headerBytes);
    } else if (id === IDS.simpleBlock || id === IDS.block) {
      this.#addBlock(place, headerBytes, end);
      this.#advance(place, end);
    } else if (id === IDS.void) {
      this.#advance(place, end);
    } else {
      if (id === IDS.encryptedBlock) throw new UnsupportedLayout('encrypted blocks');
      if (end - place.at > MAX_ELEMENT_BYTES)
        throw new UnsupportedLayout(`an element of ${end - place.at} bytes`);
      if (place.bytes.length < end - place.at) return end + this.#guessBytes;
      if (!isInside) this.#take(id, place.bytes.subarray(headerBytes, end - place.at));
      this.#advance(place, end);
    }
    return undefined;
  }

  #advance(place: Place, to: number): void {
    const bytes = to - place.at;
    this.passedBytes += bytes;
    place.bytes = place.bytes.subarray(Math.min(bytes, place.bytes.length));
    place.at = to;
  }

  #addBlock({ at, bytes }: Place, headerBytes: number, end: number): void {
    const number = variableInteger(bytes.subarray(0, PEEK_BYTES), headerBytes).value ?? 0;
    const track = this.#tracks.get(number);
    if (track === undefined) throw new UnsupportedLayout(`a block of no track: ${number}`);
    this.#blocks += 1;
    if (this.#blocks > MAX_BLOCKS) throw new UnsupportedLayout(`more than ${MAX_BLOCKS} blocks`);
    track.blocks.starts.push(at);
    track.blocks.ends.push(end);
    if (!track.isAudio) return;
    const likely = GUESS.blocks * (end - at) + PEEK_BYTES;
    this.#guessBytes = Math.min(GUESS.most, Math.max(GUESS.least, likely));
  }

  #take(id: number, payload: Uint8Array): void {
    if (id === IDS.tracks) this.#addTracks(payload);
    if (id === IDS.seekHead) {
      for (const seek of elementsAt(payload, IDS.seek)) {
        const [target] = elementsAt(seek, IDS.seekId);
        const [position] = elementsAt(seek, IDS.seekPosition);
        if (target === undefined || position === undefined) continue;
        if (unsignedOf(target) === IDS.cues) this.#begin(this.#from + unsignedOf(position));
      }
    }
    if (id !== IDS.cues) return;
    const path = [IDS.cuePoint, IDS.cueTrackPositions, IDS.cueClusterPosition];
    for (const position of elementsAt(payload, ...path)) this.#begin(this.#from + unsignedOf(position));
  }

  #addTracks(payload: Uint8Array): void {
    for (const entry of elementsAt(payload, IDS.trackEntry)) {
      const [number] = elementsAt(entry, IDS.trackNumber);
      const [type] = elementsAt(entry, IDS.trackType);
      if (number === undefined || type === undefined)
        throw new UnsupportedLayout('a track without a number or type');
      const encryption = [IDS.contentEncodings, IDS.contentEncoding, IDS.contentEncryption];
      if (elementsAt(entry, ...encryption).length > 0) throw new UnsupportedLayout('encrypted');
      const track = { number: unsignedOf(number), isAudio: unsignedOf(type) === 2 };
      if (this.#tracks.has(track.number)) throw new UnsupportedLayout('two tracks of one number');
      this.#tracks.set(track.number, { ...track, blocks: { starts: [], ends: [] } });
    }
    if (this.#tracks.size > MAX_TRACKS) throw new UnsupportedLayout(`${this.#tracks.size} tracks`);
    const audio = [...this.#tracks.values()].filter(({ isAudio }) => isAudio).length;
    if (audio === 0) throw new UnsupportedLayout('no audio track');
    if (audio === this.#tracks.size) throw new UnsupportedLayout('nothing but sound');
  }
}
