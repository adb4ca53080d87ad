/**
 * Whether a file was cut off, by what it says itself about its size (decisions A2a): an MP4 box, a RIFF chunk, an ASF header, a Matroska
 * segment that goes past the end. What has no such size cannot be told from a whole file.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { Container } from './sniff.ts';

/** @returns what is missing at the least, for callers; null where nothing is, or nobody can know. */
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

/** @returns where the file should end, 0 where it does not say. */
type EndFinder = (file: FileHandle, sizeBytes: number) => Promise<number>;

const FINDERS: Readonly<Record<string, EndFinder>> = {
  mov: endOfBoxes,
  wav: endOfRiff,
  avi: endOfRiff,
  asf: endOfAsf,
  matroska: endOfSegment,
};

/** Boxes that audio is lost with; of others only what nobody plays is missing. */
const WANTED_BOXES = new Set(['moov', 'moof', 'mdat']);

/** ISO/IEC 14496-12 section 4.2: size and type, a size of 64 bits where that of 32 is 1, none (0) to the end of the file. */
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
 * A RIFF chunk, or several in an AVI above 1 GiB (OpenDML). In RF64 (EBU Tech 3306) the size stands in the ds64 chunk. Sizes of 0 and near
 * 2 and 4 GiB are what programs write that cannot seek back.
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
  // The padding of an odd size may be left out at the end.
  return at - 1;
}

/** ASF specification, section 3.2: the File Properties Object, with the file's size and whether it is a broadcast, which has none. */
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
  /** How long the file says that it is: onMetaData's `duration`, an AMF number (Adobe FLV 10.1, E.4.4 and E.5). */
  readonly declaredSeconds: number;
  /** Whether its last tag is complete. */
  readonly isWhole: boolean;
}

/** FLV has no size. @returns null where the file does not say how long it is. */
export async function flvEnd(path: string, sizeBytes: number): Promise<FlvEnd | null> {
  await using file = await open(path);
  const head = await bytesAt(file, 0, 64 * 1024);
  const name = Buffer.from('\0\x08duration\0', 'latin1');
  const at = head.indexOf(name) + name.length;
  if (at < name.length || at + 8 > head.length) return null;
  return { declaredSeconds: head.readDoubleBE(at), isWhole: await endsWithTag(file, sizeBytes) };
}

/** E.3: after each tag stands its size, eleven bytes of header counted. */
async function endsWithTag(file: FileHandle, sizeBytes: number): Promise<boolean> {
  const last = await bytesAt(file, sizeBytes - 4, 4);
  const size = last.readUInt32BE(0);
  if (size + 4 > sizeBytes) return false;
  const tag = await bytesAt(file, sizeBytes - 4 - size, 4);
  return size >= 11 && tag.readUIntBE(1, 3) + 11 === size;
}
