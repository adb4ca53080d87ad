/** Elements of EBML (RFC 8794), read from memory. */
import { UnsupportedLayout } from '../mp4/boxes.ts';

/** Those of Matroska (RFC 9559) that are of interest here; an ID has its length marker in it. */
export const IDS = {
  ebml: 0x1a45dfa3,
  segment: 0x18538067,
  seekHead: 0x114d9b74,
  seek: 0x4dbb,
  seekId: 0x53ab,
  seekPosition: 0x53ac,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  contentEncodings: 0x6d80,
  contentEncoding: 0x6240,
  contentEncryption: 0x5035,
  cues: 0x1c53bb6b,
  cuePoint: 0xbb,
  cueTrackPositions: 0xb7,
  cueClusterPosition: 0xf1,
  cluster: 0x1f43b675,
  simpleBlock: 0xa3,
  blockGroup: 0xa0,
  block: 0xa1,
  encryptedBlock: 0xaf,
  void: 0xec,
} as const;

interface ElementHeader {
  readonly id: number;
  readonly headerBytes: number;
  /** Without the header; null where the element does not say (RFC 8794 section 6.2). */
  readonly payloadBytes: number | null;
}

/** The longest header: four bytes and eight. */
export const MAX_ELEMENT_HEADER_BYTES = 12;

/** @throws UnsupportedLayout when the bytes are too few for a header, or are none */
export function elementHeader(bytes: Uint8Array): ElementHeader {
  const idBytes = lengthOf(bytes, 0, 4);
  let id = 0;
  for (const byte of bytes.subarray(0, idBytes)) id = id * 256 + byte;
  const size = variableInteger(bytes, idBytes);
  return { id, headerBytes: idBytes + size.bytes, payloadBytes: size.value };
}

/** RFC 8794 section 4. @returns null for the value that is all ones. @throws UnsupportedLayout */
export function variableInteger(bytes: Uint8Array, at: number): { value: number | null; bytes: number } {
  const length = lengthOf(bytes, at, 8);
  let value = (bytes[at] ?? 0) & (0xff >> length);
  let isAllOnes = value === 0xff >> length;
  for (const byte of bytes.subarray(at + 1, at + length)) {
    value = value * 256 + byte;
    isAllOnes &&= byte === 0xff;
  }
  if (isAllOnes) return { value: null, bytes: length };
  if (value > Number.MAX_SAFE_INTEGER) throw new UnsupportedLayout(`an element of ${value} bytes`);
  return { value, bytes: length };
}

function lengthOf(bytes: Uint8Array, at: number, most: number): number {
  const length = Math.clz32(bytes[at] ?? 0) - 23;
  if (length > most || at + length > bytes.length)
    throw new UnsupportedLayout('an element breaks off in its header');
  return length;
}

interface Element {
  readonly id: number;
  readonly payload: Uint8Array;
}

/** An hour of cues for each second has 3,600. */
const MAX_CHILDREN = 100_000;

/** @throws UnsupportedLayout when an element does not fit */
function elementsOf(payload: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < payload.length; ) {
    const { id, headerBytes, payloadBytes } = elementHeader(
      payload.subarray(at, at + MAX_ELEMENT_HEADER_BYTES),
    );
    const end = at + headerBytes + (payloadBytes ?? Number.POSITIVE_INFINITY);
    if (end > payload.length) throw new UnsupportedLayout(`element ${id.toString(16)} does not fit`);
    if (elements.length === MAX_CHILDREN)
      throw new UnsupportedLayout(`more than ${MAX_CHILDREN} elements in one`);
    elements.push({ id, payload: payload.subarray(at + headerBytes, end) });
    at = end;
  }
  return elements;
}

/** All of those inside that lie on a path of IDs. @throws UnsupportedLayout */
export function elementsAt(payload: Uint8Array, ...[id, ...path]: readonly number[]): Uint8Array[] {
  const found = elementsOf(payload)
    .filter((element) => element.id === id)
    .map((element) => element.payload);
  return path.length === 0 ? found : found.flatMap((inner) => elementsAt(inner, ...path));
}

/** @throws UnsupportedLayout when it is too long */
export function unsignedOf(payload: Uint8Array): number {
  if (payload.length > 8) throw new UnsupportedLayout(`a number of ${payload.length} bytes`);
  return payload.reduce((value, byte) => value * 256 + byte, 0);
}
