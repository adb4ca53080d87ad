/** Containers that no program would write: nested without an end, or larger than all memory. */
import { writeFile } from 'node:fs/promises';
import type { HostileFile } from './hostile-file.ts';

/** ISO/IEC 14496-12 section 4.2. */
function box(type: string, ...content: readonly (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat(
    content.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
  );
  const head = Buffer.alloc(8);
  head.writeUInt32BE(bytes.length + 8);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, bytes]);
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
  return bytes;
}

const FTYP = box('ftyp', 'isom', words(512), 'isommp41');

/** All boxes of a depth have been counted beforehand: joining them from the inside out would be quadratic. */
function nested(type: string, depth: number): Buffer {
  const bytes = Buffer.alloc(depth * 8);
  for (let level = 0; level < depth; level += 1) {
    bytes.writeUInt32BE((depth - level) * 8, level * 8);
    bytes.write(type, level * 8 + 4, 'latin1');
  }
  return bytes;
}

/** RFC 8794: an id and a size of eight bytes. */
function ebml(id: string, size: number, content = Buffer.alloc(0)): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE((1n << 56n) | BigInt(size));
  return Buffer.concat([Buffer.from(id, 'hex'), length, content]);
}

function nestedEbml(id: string, depth: number): Buffer {
  const each = id.length / 2 + 8;
  return Buffer.concat(Array.from({ length: depth }, (_, level) => ebml(id, (depth - level - 1) * each)));
}

const EBML_HEAD = ebml('1a45dfa3', 12, Buffer.from('4282886d6174726f736b6161', 'hex'));

/** RFC 9559: segment, tags, one tag; a SimpleTag may hold SimpleTags, a ChapterAtom ChapterAtoms. */
function matroska(...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([EBML_HEAD, ebml('18538067', body.length), body]);
}

function wrapped(id: string, content: Buffer): Buffer {
  return Buffer.concat([ebml(id, content.length), content]);
}

/** ID3v2.4 section 3.1, with a size of four times seven bits. */
function id3(bytes: number, content: Buffer): Buffer {
  const size = [21, 14, 7, 0].map((shift) => (bytes >> shift) & 0x7f);
  return Buffer.concat([Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, ...size]), content]);
}

function riff(form: string, size: number, ...content: readonly Buffer[]): Buffer {
  const head = Buffer.from(`RIFF\0\0\0\0${form}`, 'latin1');
  head.writeUInt32LE(size, 4);
  return Buffer.concat([head, ...content]);
}

function chunk(name: string, size: number, content = Buffer.alloc(0)): Buffer {
  const head = Buffer.from(`${name}\0\0\0\0`, 'latin1');
  head.writeUInt32LE(size, 4);
  return Buffer.concat([head, content]);
}

/** A movie whose sound lies in another file, named by its absolute path (QuickTime File Format, "Data reference atoms"). */
function externalReference(target: string): Buffer {
  const path = Buffer.from(target);
  const alias = Buffer.alloc(150 + 4 + path.length + 4);
  alias.writeUInt8(6, 10);
  alias.write('volume', 11);
  alias.writeUInt8(5, 50);
  alias.write('a.wav', 51);
  alias.writeUInt16BE(1, 130);
  alias.writeUInt16BE(1, 132);
  alias.writeUInt16BE(2, 150);
  alias.writeUInt16BE(path.length, 152);
  path.copy(alias, 154);
  alias.writeUInt16BE(0xffff, 154 + path.length);
  const samples = 24_000;
  const description = Buffer.alloc(28);
  description.writeUInt16BE(1, 6);
  description.writeUInt16BE(1, 16);
  description.writeUInt16BE(16, 18);
  description.writeUInt32BE((48_000 << 16) >>> 0, 24);
  const table = box(
    'stbl',
    box('stsd', words(0, 1), box('sowt', description)),
    box('stts', words(0, 1, samples, 1)),
    box('stsc', words(0, 1, 1, samples, 1)),
    box('stsz', words(0, 2, samples)),
    box('stco', words(0, 1, 44)),
  );
  const handler = box('hdlr', words(0), 'mhlrsoun', words(0, 0, 0), '\0');
  const media = box(
    'mdia',
    box('mdhd', words(0, 0, 0, 48_000, samples, 0)),
    handler,
    box(
      'minf',
      box('smhd', words(0, 0)),
      box('dinf', box('dref', words(0, 1), box('alis', words(0), alias))),
      table,
    ),
  );
  const track = box('trak', box('tkhd', words(0xf, 0, 0, 1, 0, samples), Buffer.alloc(60)), media);
  const movie = box('moov', box('mvhd', words(0, 0, 0, 48_000, samples), Buffer.alloc(80)), track);
  return Buffer.concat([
    box('ftyp', 'qt  ', words(0), 'qt  '),
    movie,
    box('mdat', Buffer.alloc(2 * samples)),
  ]);
}

/** Sizes that lie, on a movie whose box comes first. */
function moovSize(size: number): Buffer {
  const moov = box('moov', box('mvhd', Buffer.alloc(100)), nested('trak', 4));
  moov.writeUInt32BE(size);
  return Buffer.concat([FTYP, moov, box('mdat', Buffer.alloc(1000))]);
}

const DEPTH = 20_000;

/** The reference is not followed: what is decoded is the silence in the file itself. The tags hold sound of a kind. */
const HARMLESS = new Set(['external-reference.mov', 'huge-tag.flv']);

export function boxFiles(canary: string): HostileFile[] {
  const files: Record<string, Buffer> = {
    'moov-size-0.mp4': moovSize(0),
    'moov-size-1.mp4': moovSize(1),
    'moov-size-7.mp4': moovSize(7),
    'moov-size-max.mp4': moovSize(0xffffffff),
    'moov-long-size.mp4': Buffer.concat([FTYP, words(1), Buffer.from('moov'), words(0xffffffff, 0xffffffff)]),
    'nested-moov.mp4': Buffer.concat([FTYP, nested('moov', DEPTH)]),
    'nested-trak.mp4': Buffer.concat([FTYP, nested('trak', DEPTH)]),
    'nested-udta.mp4': Buffer.concat([FTYP, box('moov', nested('udta', DEPTH))]),
    'nested-meta.mp4': Buffer.concat([FTYP, nested('meta', DEPTH)]),
    'many-traks.mp4': Buffer.concat([FTYP, box('moov', ...Array<Buffer>(DEPTH).fill(box('trak')))]),
    'nested-tags.mkv': matroska(wrapped('1254c367', wrapped('7373', nestedEbml('67c8', DEPTH)))),
    'nested-chapters.mkv': matroska(wrapped('1043a770', wrapped('45b9', nestedEbml('b6', DEPTH)))),
    'huge-segment.mkv': Buffer.concat([EBML_HEAD, ebml('18538067', 2 ** 53 - 1), ebml('1654ae6b', 2 ** 40)]),
    'huge-tag.mkv': matroska(ebml('1254c367', 2 ** 31 - 1)),
    'nested-list.avi': riff(
      'AVI ',
      0xffffffff,
      ...Array.from({ length: DEPTH }, (_, level) =>
        chunk('LIST', (DEPTH - level) * 12, Buffer.from('hdrl')),
      ),
    ),
    'huge-strf.avi': riff(
      'AVI ',
      0x7fffffff,
      chunk('LIST', 500, Buffer.from('hdrl')),
      chunk('strf', 0xfffffff0),
    ),
    'huge-fmt.wav': riff('WAVE', 0xffffffff, chunk('fmt ', 0xfffffff0, Buffer.alloc(64))),
    'huge-list.wav': riff('WAVE', 0xffffffff, chunk('LIST', 0xfffffff0, Buffer.from('INFOINAM'))),
    'zero-rate.wav': riff(
      'WAVE',
      100,
      chunk('fmt ', 16, Buffer.from([1, 0, 255, 255, ...Array<number>(12).fill(0)])),
      chunk('data', 64, Buffer.alloc(64)),
    ),
    'huge-id3.mp3': id3(0x0fffffff, Buffer.from('APIC\x7f\x7f\x7f\x7f\0\0', 'latin1')),
    'nested-id3.mp3': Buffer.concat(Array<Buffer>(DEPTH).fill(id3(10, id3(0, Buffer.alloc(0))))),
    'huge-header.wma': Buffer.concat([
      Buffer.from('3026b2758e66cf11a6d900aa0062ce6c', 'hex'),
      Buffer.from('ffffffffffffff7fffffffff0102', 'hex'),
      Buffer.alloc(200),
    ]),
    'huge-tag.flv': Buffer.from(`464c5601050000000900000000${'08ffffff00000000000000'.repeat(50)}`, 'hex'),
    'huge-comment.flac': Buffer.from(`664c614384ffffff${'ffffffff'.repeat(20)}`, 'hex'),
    'external-reference.mov': externalReference(canary),
  };
  return Object.entries(files).map(([name, bytes]) => ({
    name,
    family: 'boxes',
    expected: HARMLESS.has(name) ? 'either' : 'refused',
    place: (path) => writeFile(path, bytes),
  }));
}
