/** Matroska files made of elements by hand (RFC 9559), as a test wants them. */
import { IDS } from '../../src/sparse/matroska/elements.ts';

export function element(id: number, ...content: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(content);
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(bytes.length) + (1n << 56n));
  return Buffer.concat([idOf(id), size, bytes]);
}

/** One that does not say how long it is (RFC 8794 section 6.2). */
export const endless = (id: number, ...content: readonly Buffer[]) =>
  Buffer.concat([idOf(id), Buffer.from('01ffffffffffffff', 'hex'), ...content]);

function idOf(id: number): Buffer {
  const hex = id.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
}

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

export const EBML = element(IDS.ebml, element(0x4282, Buffer.from('matroska')));

/** @param type 1: pictures, 2: sound */
export const entry = (track: number, type: number, ...others: readonly Buffer[]) =>
  element(
    IDS.trackEntry,
    element(IDS.trackNumber, number(track)),
    element(IDS.trackType, number(type)),
    ...others,
  );

export const TRACKS = element(IDS.tracks, entry(1, 1), entry(2, 2));

const content = (track: number, bytes: number) =>
  Buffer.concat([Buffer.from([0x80 + track, 0, 0, 0x80]), Buffer.alloc(bytes, track)]);
export const block = (track: number, bytes: number) => element(IDS.simpleBlock, content(track, bytes));
export const group = (track: number, bytes: number) =>
  element(IDS.blockGroup, element(IDS.block, content(track, bytes)), element(0x9b, number(20)));

export const cluster = (...blocks: readonly Buffer[]) =>
  element(IDS.cluster, element(0xe7, number(0)), ...blocks);

export const file = (...elements: readonly Buffer[]) =>
  Buffer.concat([EBML, element(IDS.segment, ...elements)]);

/** Where each of several elements begins, counted from the first one. */
export const placesOf = (elements: readonly Buffer[]) =>
  elements.map((_, nth) => elements.slice(0, nth).reduce((sum, { length }) => sum + length, 0));

export const cues = (...places: readonly number[]) =>
  element(
    IDS.cues,
    ...places.map((place) =>
      element(IDS.cuePoint, element(IDS.cueTrackPositions, element(IDS.cueClusterPosition, number(place)))),
    ),
  );

export const seekHead = (target: number, place: number) =>
  element(
    IDS.seekHead,
    element(IDS.seek, element(IDS.seekId, idOf(target)), element(IDS.seekPosition, number(place))),
  );
