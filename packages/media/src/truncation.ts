/**
 * Whether a file was cut off, by its own size fields (decisions A2a): an MP4 box, a RIFF chunk, an
 * ASF header or a Matroska segment that exceeds the file. Without such a field nobody can tell.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { Container } from './sniff.ts';

/** @returns the least that is missing, for callers; null if nothing is, or it is unknown. */
export async function missingEnd(
  path: string,
  { demuxer }: Container,
  sizeBytes: number,
): Promise<string | null> {
  const find = FINDERS[demuxer];
  if (find === undefined) return null;
  await using file = await open(path);
  const missing = (await find(file, sizeBytes)) - sizeBytes;
  return missing > 0 ? `the file is truncated: ${missing} bytes are missing at its end` : null;
}

/** @returns where the file should end, 0 if it does not say. */
type EndFinder = (file: FileHandle, sizeBytes: number) => Promise<number>;

const FINDERS: Readonly<Record<string, EndFinder>> = {
  mov: endOfBoxes,
  wav: endOfRiff,
  avi: endOfRiff,
  asf: endOfAsf,
  matroska: endOfSegment,
};

/** Boxes that audio needs; in others only what is never played can be missing. */
const WANTED_BOXES = new Set(['moov', 'moof', 'mdat']);

/** ISO/IEC 14496-12 section 4.2: size and type; size 1: 64 bits follow, 0: to the file's end. */
async function endOfBoxes(file: FileHandle, sizeBytes: number): Promise<number> {
  let end = 0;
  for (let at = 0; at + 8 <= sizeBytes; ) {
    const head = await bytesAt(file, at, 16);
    const short = head.readUInt32BE(0);
    const size = short === 1 && head.length === 16 ? Number(head.readBigUInt64BE(8)) : short;
    if (size < 8) break;
    if (WANTED_BOXES.has(head.toString('latin1', 4, 8))) end = at + size;
    at += size;
  }
  return end;
}

/**
 * A RIFF chunk, or several in an AVI above 1 GiB (OpenDML). RF64 (EBU Tech 3306) has the size in
 * its ds64 chunk. Programs that cannot seek back write sizes of 0 and near 2 and 4 GiB.
 */
async function endOfRiff(file: FileHandle, sizeBytes: number): Promise<number> {
  let at = 0;
  while (at + 12 <= sizeBytes) {
    const head = await bytesAt(file, at, 28);
    const id = head.toString('latin1', 0, 4);
    if (id === 'RF64' || id === 'BW64') return head.length < 28 ? 0 : 8 + Number(head.readBigUInt64LE(20));
    if (id !== 'RIFF') break;
    const size = head.readUInt32LE(4);
    const isPlaceholder = size === 0 || size >= 0xffff0000 || size >>> 16 === 0x7fff;
    if (isPlaceholder) return 0;
    at += 8 + size + (size % 2);
  }
  // The padding of an odd size may be missing at the end.
  return at - 1;
}

/** ASF specification, 3.2: File Properties, with the file's size, unless it is a broadcast. */
const FILE_PROPERTIES = Buffer.from('a1dcab8c47a9cf118ee400c00c205365', 'hex');

async function endOfAsf(file: FileHandle): Promise<number> {
  const head = await bytesAt(file, 0, 64 * 1024);
  const at = head.indexOf(FILE_PROPERTIES);
  if (at < 0 || at + 92 > head.length) return 0;
  const isBroadcast = (head.readUInt32LE(at + 88) & 1) === 1;
  return isBroadcast ? 0 : Number(head.readBigUInt64LE(at + 40));
}

const SEGMENT = Buffer.from('18538067', 'hex');

/** RFC 8794: the Segment's size follows its id; all bits set: unknown, as in a live recording. */
async function endOfSegment(file: FileHandle): Promise<number> {
  const head = await bytesAt(file, 0, 4096);
  const at = head.indexOf(SEGMENT);
  const first = head[at + 4] ?? 0;
  const length = Math.clz32(first) - 23;
  const bodyAt = at + 4 + length;
  if (at < 0 || first === 0 || bodyAt > head.length) return 0;
  const digits = Buffer.from(head.subarray(at + 4, bodyAt));
  digits[0] = first & (0xff >> length);
  const size = BigInt(`0x${digits.toString('hex')}`);
  const unknown = (1n << BigInt(7 * length)) - 1n;
  return size === unknown ? 0 : bodyAt + Number(size);
}

async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at);
  return buffer.subarray(0, bytesRead);
}

interface FlvEnd {
  /** Declared length: onMetaData's `duration`, an AMF number (Adobe FLV 10.1, E.4.4 and E.5). */
  readonly declaredSeconds: number;
  /** Whether its last tag is complete. */
  readonly isWhole: boolean;
}

/** FLV has no size. @returns null if the file does not declare its length. */
export async function flvEnd(path: string, sizeBytes: number): Promise<FlvEnd | null> {
  await using file = await open(path);
  const head = await bytesAt(file, 0, 64 * 1024);
  const name = Buffer.from('\0\x08duration\0', 'latin1');
  const at = head.indexOf(name) + name.length;
  if (at < name.length || at + 8 > head.length) return null;
  return { declaredSeconds: head.readDoubleBE(at), isWhole: await endsWithTag(file, sizeBytes) };
}

/** E.3: each tag is followed by its size, which includes eleven bytes of header. */
async function endsWithTag(file: FileHandle, sizeBytes: number): Promise<boolean> {
  const last = await bytesAt(file, sizeBytes - 4, 4);
  const size = last.readUInt32BE(0);
  if (size + 4 > sizeBytes) return false;
  const tag = await bytesAt(file, sizeBytes - 4 - size, 4);
  return size >= 11 && tag.readUIntBE(1, 3) + 11 === size;
}
