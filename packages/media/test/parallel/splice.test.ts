/** Where two runs may be joined, and how packets become pages. */
import { open } from 'node:fs/promises';
import { mediaFolder } from 'soundpost-testing/sources';
import { expect, it } from 'vitest';
import { ByteReader, ByteWriter } from '../../src/byte-file.ts';
import { OggPageWriter, oggPackets } from '../../src/ogg/pages.ts';
import { findSplice } from '../../src/parallel/parts.ts';
import { oggPagesOf } from './containers.ts';

const folder = mediaFolder();

/** A run whose packets are letters; a dot is one that cannot be told. */
const run = (letters: string) => [...letters].map((letter) => (letter === '.' ? null : Buffer.from(letter)));

it.each([
  ['abcdefgh', 'xxxdefgh', 6],
  ['abcdefgh', 'xxxdefgx', 5],
  ['abcdefghij', 'abcdeXghij', 8],
  ['abcdefgh', 'abcdefgh--', 6],
  ['...defgh', '...defgh', 6],
  ['abcdefgh', 'abcXefgX', undefined],
  ['........', '........', undefined],
  ['', '', undefined],
])('of %s and %s with two the same before and two after is %s', (earlier, later, place) => {
  expect(findSplice(run(earlier), run(later), { before: 2, after: 2 })).toBe(place);
});

it('packets of any length come out of the pages as they went in', async () => {
  // Six lacing values each, so that the 255 of a page end in the middle of one; and lengths that end with a value of 0.
  const lengths = [...Array<number>(120).fill(1275), 1, 254, 255, 256, 510, 0, 3, 765];
  const packets = lengths.map((length, nth) => Buffer.alloc(length, nth + 1));
  const file = await open(folder.at('packets.ogg'), 'w+');
  const pages = new OggPageWriter(new ByteWriter(file), { serial: 7, sequence: 2 });
  // A millisecond each: no page ends for its length in time.
  for (const [nth, packet] of packets.entries()) await pages.packet(packet, (nth + 1) * 48);
  await pages.end();

  const read: Buffer[] = [];
  for await (const packet of oggPackets(new ByteReader(file))) read.push(Buffer.from(packet));
  await file.close();
  expect(read).toEqual(packets);
  const written = await oggPagesOf(folder.at('packets.ogg'));
  expect(written.map(({ sequence }) => sequence)).toEqual([2, 3, 4]);
  expect(written.map(({ crc }) => crc)).toEqual(written.map(({ rightCrc }) => rightCrc));
  // A page says when it begins with the rest of a packet (RFC 3533 section 6).
  const isBroken = written.map(({ lacing }) => lacing.at(-1) === 255);
  expect(isBroken).toEqual([true, false, false]);
  expect(written.map(({ flags }) => flags)).toEqual([0, 1, 4]);
  // Of the last packet that ends on it.
  expect(written.map(({ granule }) => granule)).toEqual([42 * 48, 85 * 48, lengths.length * 48]);
});
