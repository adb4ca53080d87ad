/** What fMP4 segments may cost: each header is read once, and nothing grows faster than their bytes. */
import { open, writeFile } from 'node:fs/promises';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { FragmentJoiner } from '../../src/streams/join/fragments.ts';
import { readMovie } from '../../src/streams/join/movie.ts';
import type { Part } from '../../src/streams/join/part.ts';
import { box, FTYP } from '../sparse/mp4-boxes.ts';
import { fragment, header } from './fmp4.ts';

const folder = mediaFolder();
const charged: number[] = [];
const reading = { signal: new AbortController().signal, charge: (seconds: number) => charged.push(seconds) };
const segment = { url: 'http://cdn.example/1.mp4', seconds: 2, breaksClock: false };

/** @returns how often the file was read */
async function append(
  joiner: FragmentJoiner,
  bytes: Buffer,
  init?: Buffer,
): Promise<{ reads: number; written: Buffer }> {
  const path = folder.at(`${crypto.randomUUID()}.mp4`);
  await writeFile(path, bytes);
  await using handle = await open(path);
  let reads = 0;
  const file = {
    read: (...args: Parameters<typeof handle.read>) => {
      reads += 1;
      return handle.read(...args);
    },
  } as unknown as Part['file'];
  const chunks: Uint8Array[] = [];
  const sound = { ...WHOLE, bytes: bytes.length };
  const part = { segment, file, sizeBytes: bytes.length, init, reading, sound, missingSeconds: 0 };
  await joiner.append(part, { write: async (chunk) => void chunks.push(chunk) });
  return { reads, written: Buffer.concat(chunks) };
}

const WHOLE = {
  ...{ kind: 'mov', heldSeconds: undefined, startSeconds: undefined, isWhole: true, beside: [] },
};

const UNREADABLE = {
  code: 'INVALID_VIDEO',
  details: 'a segment of the stream is not readable fragmented MP4',
};

it('4,000 defaults of tracks are gone through once, and the first for a track counts', () => {
  const twice = header(1, 4_000, box('free'));
  expect(readMovie(twice).tracks).toMatchObject([{ id: 1, sampleTicks: 1024 }]);
});

it('64 tracks are read, of 65 the number is told', () => {
  expect(readMovie(header(64, 64)).tracks).toHaveLength(64);
  expect(() => readMovie(header(65))).toThrow(
    expect.objectContaining({
      code: 'INVALID_VIDEO',
      details: 'the stream describes 65 tracks, which is more than 64',
    }),
  );
});

it('two large headers that alternate are each read once', async () => {
  const joiner = new FragmentJoiner();
  const [one, other] = [80_000, 90_000].map((bytes) => header(1, 1, box('udta', Buffer.alloc(bytes))));
  for (let turn = 0; turn < 20; turn += 1) {
    const { written } = await append(joiner, fragment, turn % 2 === 0 ? one : other);
    // The first is the joined file's.
    expect(written).toHaveLength((turn === 0 ? (one?.length ?? 0) : 0) + fragment.length);
  }
  expect(charged).toHaveLength(2);
});

it('99,999 empty boxes take a read for some hundred of them', async () => {
  const boxes = Buffer.concat(Array.from({ length: 99_999 }, () => box('free')));
  const { reads } = await append(new FragmentJoiner(), Buffer.concat([header(1), boxes, fragment]));
  expect(reads).toBeLessThan(300);
});

it.each([
  ['a header above 1 MiB', header(1, 1, box('udta', Buffer.alloc(1024 * 1024)))],
  ['two beginnings of a header', Buffer.concat([FTYP, header(1)])],
])('%s inside a segment is refused', async (_what, bytes) => {
  await expect(append(new FragmentJoiner(), Buffer.concat([bytes, fragment]))).rejects.toMatchObject(
    UNREADABLE,
  );
});

it('of all segments together a stream has no more than 400,000 boxes', async () => {
  const joiner = new FragmentJoiner();
  const boxes = Buffer.concat(Array.from({ length: 200_000 }, () => box('free')));
  await append(joiner, Buffer.concat([header(1), boxes, fragment]));
  await expect(append(joiner, boxes)).rejects.toMatchObject(UNREADABLE);
});
