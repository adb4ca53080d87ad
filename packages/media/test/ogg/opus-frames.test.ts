/** Packets of Opus by the bytes that RFC 6716 sections 3.2 to 3.4 give them. */
import { describe, expect, it } from 'vitest';
import { framesOf, packetOf } from '../../src/ogg/opus-frames.ts';

/** Configuration 9, mono: SILK, wideband, 20 ms. */
const KIND = 0x48;
const frame = (length: number, fill = length & 0xff): Buffer => Buffer.alloc(length, fill);
const packet = (...parts: (number | Buffer)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : part)));

describe('a packet is put together as the shortest of its frames, and taken apart into the same', () => {
  it.each([
    ['one frame', [7], [0x48]],
    ['one frame without a byte', [0], [0x48]],
    ['two of a length', [5, 5], [0x49]],
    ['two of different lengths', [5, 6], [0x4a, 5]],
    ['two, of which the first has a length of two bytes', [252, 1], [0x4a, 252, 0]],
    ['three of a length', [9, 9, 9], [0x4b, 3]],
    ['three without a byte', [0, 0, 0], [0x4b, 3]],
    ['three of different lengths', [9, 8, 9], [0x4b, 0x83, 9, 8]],
    ['three with one that is left out (DTX)', [0, 40, 40], [0x4b, 0x83, 0, 40]],
    ['lengths around the two bytes', [251, 252, 1], [0x4b, 0x83, 251, 252, 0]],
    ['lengths of which the rest is not 0', [255, 253, 1], [0x4b, 0x83, 255, 0, 253, 0]],
    ['the first length that needs a second byte to count', [256, 254, 1], [0x4b, 0x83, 252, 1, 254, 0]],
    ['the longest', [1275, 1274, 1275], [0x4b, 0x83, 255, 255, 254, 255]],
  ])('%s', (_what, lengths, head) => {
    const frames = lengths.map((length, nth) => frame(length, nth + 1));
    const made = packetOf({ kind: KIND, frames });
    expect(made.equals(packet(...head, ...frames))).toBe(true);
    expect(framesOf(made)).toEqual({ kind: KIND, frames });
  });
});

describe('what others write is taken apart', () => {
  it.each([
    ['one frame as code 3', packet(0x4b, 1, frame(4)), [4]],
    ['one frame of variable length', packet(0x4b, 0x81, frame(4)), [4]],
    ['padding', packet(0x4b, 0x42, 3, frame(4, 1), frame(4, 2), frame(3, 0)), [4, 4]],
    ['padding of 254 bytes and more', packet(0x4b, 0x41, 255, 2, frame(4), frame(256, 0)), [4]],
    ['padding and variable lengths', packet(0x4b, 0xc2, 1, 3, frame(3, 1), frame(5, 2), 0), [3, 5]],
    ['120 ms', packet(0x4b, 6, frame(60)), [10, 10, 10, 10, 10, 10]],
  ])('%s', (_what, bytes, lengths) => {
    const taken = framesOf(bytes);
    expect(taken?.kind).toBe(KIND);
    expect(taken?.frames.map(({ length }) => length)).toEqual(lengths);
  });
});

describe('what no decoder takes is none (section 3.4)', () => {
  it.each([
    ['nothing (R1)', packet()],
    ['a frame of 1276 bytes (R2)', packet(0x48, frame(1276))],
    ['two of 1276 bytes (R2)', packet(0x49, frame(2552))],
    ['a last frame of 1276 bytes (R2)', packet(0x4a, 1, frame(1277))],
    ['two of a length with an odd number of bytes (R3)', packet(0x49, frame(5))],
    ['a length without its second byte (R4)', packet(0x4a, 252)],
    ['a first frame longer than the packet (R4)', packet(0x4a, 9, frame(8))],
    ['code 3 without a count (R6)', packet(0x4b)],
    ['no frames (R5)', packet(0x4b, 0)],
    ['140 ms (R5)', packet(0x4b, 7, frame(7))],
    ['padding longer than the packet (R6)', packet(0x4b, 0x41, 9, frame(8))],
    ['padding without an end (R6)', packet(0x4b, 0x41, 255, 255)],
    ['bytes that do not divide (R6)', packet(0x4b, 3, frame(4))],
    ['lengths beyond the end (R7)', packet(0x4b, 0x83, 5, 5, frame(9))],
    ['lengths that are cut off (R7)', packet(0x4b, 0x83, 5)],
  ])('%s', (_what, bytes) => {
    expect(framesOf(bytes)).toBeNull();
  });
});
