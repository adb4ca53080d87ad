/** Files that a stranger made to look like voice notes: none is mended wrongly, and none takes more time or memory than a note may. */

import { type FileHandle, open, readFile } from 'node:fs/promises';
import { devNull } from 'node:os';
import { mediaFolder } from 'soundpost-testing/sources';
import { turnsDuring } from 'soundpost-testing/turns-during';
import { expect, it } from 'vitest';
import { ByteReader, ByteWriter } from '../../src/byte-file.ts';
import { BrokenOgg, OggPageWriter, oggPackets } from '../../src/ogg/pages.ts';
import { packVoiceNote } from '../../src/ogg/voice-form.ts';

const folder = mediaFolder();
const PRE_SKIP = 312;
/** 20 ms at 48 kHz. */
const FRAME = 960;
const NATIVE = 0x48;

type Packet = readonly [bytes: Buffer, granule: number];

async function write(packets: Iterable<Packet>, tags = Buffer.alloc(0)): Promise<string> {
  const head = Buffer.alloc(19);
  head.write('OpusHead');
  head.set([1, 1], 8);
  head.writeUInt16LE(PRE_SKIP, 10);
  head.writeUInt32LE(16_000, 12);
  const path = folder.at('strange.ogg');
  const file = await open(path, 'w');
  try {
    const writer = new OggPageWriter(new ByteWriter(file), { serial: 1, sequence: 0 });
    await writer.packet(head, 0);
    await writer.endPage();
    await writer.packet(Buffer.concat([Buffer.from('OpusTags'), Buffer.alloc(8), tags]), 0);
    await writer.endPage();
    for (const [bytes, granule] of packets) await writer.packet(bytes, granule);
    await writer.end();
  } finally {
    await file.close();
  }
  return path;
}

const note = (count: number, last = count * FRAME): Packet[] =>
  Array.from({ length: count }, (_, nth) => [
    Buffer.of(NATIVE, nth & 0xff),
    nth === count - 1 ? last : (nth + 1) * FRAME,
  ]);

it('a note whose end is cut off within its last packet is put together', async () => {
  const path = await write(note(7, 7 * FRAME - 100));
  expect(await packVoiceNote(path, folder.at('mended.ogg'))).toMatchObject({ isNative: true, packets: 3 });
});

it.each([
  ['a frame that is longer than any', [[Buffer.alloc(1300, NATIVE), FRAME] as Packet]],
  ['a packet of more than 120 ms', [[Buffer.of(NATIVE | 3, 63), 63 * FRAME] as Packet]],
  ['a packet of a megabyte', [[Buffer.alloc(1024 * 1024, NATIVE), FRAME] as Packet]],
  ['an end without a granule position', note(4, -1)],
  ['an end before the packet in front of it', note(4, 2 * FRAME)],
  ['an end far behind its last packet', note(4, 9 * FRAME)],
])('%s is not mended', async (_what, packets) => {
  await expect(packVoiceNote(await write(packets), devNull)).rejects.toBeInstanceOf(BrokenOgg);
});

it('packets of two bytes, of which thousands are read at once, let others run', async () => {
  const bytes = await readFile(await write(note(10_000)));
  // Its answers are there at once: a wait for a disk would count too.
  const read = async (target: Buffer, _: number, length: number, at: number) => ({
    bytesRead: bytes.copy(target, 0, at, at + length),
  });
  const packets = oggPackets(new ByteReader({ read } as unknown as FileHandle));
  const turns = await turnsDuring(async () => {
    for await (const packet of packets) expect(packet.length).toBeGreaterThan(0);
  });
  // A page a second.
  expect(turns).toBeGreaterThanOrEqual(200);
});

it('tags of a megabyte are not read', async () => {
  const path = await write(note(4), Buffer.alloc(1024 * 1024));
  await expect(packVoiceNote(path, devNull)).rejects.toBeInstanceOf(BrokenOgg);
});

it('what is longer than is accepted is read no further', async () => {
  const path = await write(note(50));
  const maxSamples = 50 * FRAME - PRE_SKIP;
  expect(await packVoiceNote(path, devNull, { maxSamples })).toMatchObject({ isNative: true });
  await expect(packVoiceNote(path, devNull, { maxSamples: maxSamples - 1 })).rejects.toThrow('too long');
});

it('a file of another kind is read up to its first frame', async () => {
  const other: Packet[] = [
    [Buffer.of(0xf8, 1), FRAME],
    ...note(5).slice(1),
    [Buffer.of(NATIVE | 3, 0), 6 * FRAME],
  ];
  // The last packet is none: who reads that far throws.
  expect(await packVoiceNote(await write(other), devNull)).toMatchObject({ isNative: false });
});

it('whoever asked may give up', async () => {
  const signal = AbortSignal.abort(new Error('the sender hung up'));
  await expect(packVoiceNote(await write(note(4)), devNull, { signal })).rejects.toThrow('hung up');
});
