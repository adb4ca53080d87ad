/** Files whose indexes are read, in memory and on the disk, and what was asked of them. */
import type { FileHandle } from 'node:fs/promises';
import type { ByteSpans } from 'soundpost-outbound/ranges-spans';
import type { ByteSource } from '../../src/sparse/mp4/top-level.ts';

interface CountingSource extends ByteSource {
  /** Of all that was read. */
  readonly readBytes: number;
  /** How many stretches each call of `readEach` asked for. */
  readonly rounds: readonly number[];
}

export function sourceOf(
  sizeBytes: number,
  read: (start: number, end: number) => Promise<Uint8Array>,
  roundTripBytes = 0,
  rangeBytes = 0,
): CountingSource {
  const rounds: number[] = [];
  let readBytes = 0;
  const counted = (start: number, end: number): Promise<Uint8Array> => {
    if (start < 0 || end > sizeBytes || start >= end) throw new Error(`asked for ${start} to ${end}`);
    readBytes += end - start;
    return read(start, end);
  };
  return {
    sizeBytes,
    roundTripBytes,
    rangeBytes,
    rounds,
    get readBytes() {
      return readBytes;
    },
    read: counted,
    readEach(spans) {
      rounds.push(spans.length);
      return Promise.all(spans.map(({ start, end }) => counted(start, end)));
    },
  };
}

export function inMemory(file: Buffer, roundTripBytes = 0, rangeBytes = 0): CountingSource {
  return sourceOf(file.length, async (start, end) => file.subarray(start, end), roundTripBytes, rangeBytes);
}

export async function onDisk(file: FileHandle, roundTripBytes = 0): Promise<CountingSource> {
  const { size } = await file.stat();
  const read = async (start: number, end: number): Promise<Uint8Array> =>
    (await file.read(Buffer.alloc(end - start), 0, end - start, start)).buffer;
  return sourceOf(size, read, roundTripBytes);
}

export const pairs = ({ starts, ends }: ByteSpans): [number, number][] =>
  [...starts].map((start, place) => [start, ends[place] ?? 0]);
