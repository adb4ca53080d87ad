/**
 * Files of forms that ffmpeg reads and does not write, from what is published of each. Where a codec has no encoder its
 * packets are bits of no meaning, or silence: what they show is that a container leads to the decoder, and that it gives
 * samples.
 */
import { box, stco, stsc, stsz, stts, words } from './sparse/mp4-boxes.ts';

const be = (bytes: number, ...values: readonly number[]): Buffer =>
  Buffer.concat(values.map((value) => numberOf(bytes, value)));
const le = (bytes: number, ...values: readonly number[]): Buffer =>
  Buffer.concat(values.map((value) => numberOf(bytes, value).reverse()));
const ascii = (text: string): Buffer => Buffer.from(text, 'latin1');
const hex = (digits: string): Buffer => Buffer.from(digits.replaceAll(' ', ''), 'hex');

/** Most significant byte first; a number has 53 bits. */
function numberOf(bytes: number, value: number): Buffer {
  return Buffer.from(
    BigInt.asUintN(bytes * 8, BigInt(value))
      .toString(16)
      .padStart(bytes * 2, '0'),
    'hex',
  );
}

/** The same noise each time. */
function noise(bytes: number, seed = 1): Buffer {
  let state = seed;
  return Buffer.from(
    Array.from({ length: bytes }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 24;
    }),
  );
}

function repeated(count: number, of: (nth: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, nth) => of(nth)));
}

/** `1`s and `0`s, most significant bit first. */
function packed(bits: string): Buffer {
  const bytes = bits.padEnd(Math.ceil(bits.length / 8) * 8, '0').match(/.{8}/g) ?? [];
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
}

const binary = (value: number, length: number): string => value.toString(2).padStart(length, '0');

const chunk = (id: string, content: Buffer): Buffer =>
  Buffer.concat([ascii(id), le(4, content.length), content, Buffer.alloc(content.length % 2)]);

interface Packets {
  readonly rate: number;
  readonly channels?: number;
  /** Of a packet. */
  readonly bytes: number;
  readonly samples: number;
  readonly extra?: Buffer;
  readonly payload: Buffer;
}

/** RIFF WAVE, by WAVEFORMATEX' format tag. */
function wav(tag: number, packets: Packets & { readonly bits?: number }): Buffer {
  const { rate, channels = 1, bytes, samples, bits = 16, extra = Buffer.alloc(0), payload } = packets;
  const bytesPerSecond = Math.round((rate * bytes) / samples);
  const format = [le(2, tag, channels), le(4, rate, bytesPerSecond), le(2, bytes, bits, extra.length), extra];
  const chunks = Buffer.concat([ascii('WAVE'), chunk('fmt ', Buffer.concat(format)), chunk('data', payload)]);
  return Buffer.concat([ascii('RIFF'), le(4, chunks.length), chunks]);
}

/** Apple's Core Audio Format 1.0. */
function caf(codec: string, { rate, channels = 1, bytes, samples, extra, payload }: Packets): Buffer {
  const description = Buffer.alloc(32);
  description.writeDoubleBE(rate);
  description.write(codec, 8, 'latin1');
  for (const [nth, value] of [0, bytes, samples, channels, 0].entries()) {
    description.writeUInt32BE(value, 12 + 4 * nth);
  }
  const part = (id: string, content: Buffer) => Buffer.concat([ascii(id), be(8, content.length), content]);
  const cookie = extra === undefined ? Buffer.alloc(0) : part('kuki', extra);
  const data = Buffer.concat([Buffer.alloc(4), payload]);
  return Buffer.concat([ascii('caff'), be(2, 1, 0), part('desc', description), cookie, part('data', data)]);
}

/** ISO/IEC 14496-14: one track of packets of one size, by the DecoderSpecificInfo of 14496-3. */
function mp4(config: Buffer, { rate, channels = 1, bytes, samples, payload }: Packets): Buffer {
  const descriptor = (tag: number, content: Buffer) => Buffer.concat([be(1, tag, content.length), content]);
  const decoder = [hex('4015 000000 00000000 00000000'), descriptor(5, config)];
  const es = [hex('0001 00'), descriptor(4, Buffer.concat(decoder)), descriptor(6, hex('02'))];
  const esds = box('esds', words(0), descriptor(3, Buffer.concat(es)));
  const entry = box(
    'mp4a',
    hex('000000000000 0001 0000000000000000'),
    be(2, channels, 16, 0, 0, rate, 0),
    esds,
  );
  const count = payload.length / bytes;
  const tables = [stts(count, samples), stsc(1, count, 1), stsz(...Array<number>(count).fill(bytes))];
  const ftyp = box('ftyp', ascii('isom'), words(512), ascii('isommp41'));
  const media = box('mdat', payload);
  const stbl = box('stbl', box('stsd', words(0, 1), entry), ...tables, stco(ftyp.length + 8));
  const ends = count * samples;
  const mdia = box(
    'mdia',
    box('mdhd', words(0, 0, 0, rate, ends, 0)),
    box('hdlr', words(0, 0), ascii('soun'), Buffer.alloc(13)),
    box('minf', box('smhd', words(0, 0)), stbl),
  );
  const trak = box('trak', box('tkhd', words(7, 0, 0, 1, 0, ends), Buffer.alloc(60)), mdia);
  const mvhd = box('mvhd', words(0, 0, 0, rate, ends, 0x10000), Buffer.alloc(72), words(2));
  return Buffer.concat([ftyp, media, box('moov', mvhd, trak)]);
}

/** MPEG audio of layer III in an MP4 as ISO/IEC 14496-3 subpart 9 has it: a length for the sync. */
export function mp3on4(): Buffer {
  const frame = Buffer.concat([hex('1a1b 9064'), Buffer.alloc(413)]);
  const payload = repeated(20, () => frame);
  return mp4(hex('f84840'), { rate: 44_100, channels: 2, bytes: 417, samples: 1152, payload });
}

/** ISO/IEC 14496-3 subpart 11 (ALS): blocks of zeros. */
export function als(): Buffer {
  const fixed = '00000100'; // file_type, 16 bits, not floating, lowest byte first
  const config = [
    packed(`11111000100${binary(4, 4)}${binary(1, 4)}00000`), // object type 36, 44.1 kHz, mono, fillBits
    Buffer.concat([ascii('ALS\0'), be(4, 44_100, 20 * 2048), be(2, 0), packed(fixed), be(2, 2047)]),
    Buffer.alloc(5), // no random access, prediction, blocks, checksum
    be(4, 0, 0),
  ];
  const payload = Buffer.alloc(20 * 16);
  return mp4(Buffer.concat(config), { rate: 44_100, bytes: 16, samples: 2048, payload });
}

/** RFC 4867 section 5, at the highest bitrate. */
export function amr(isWide: boolean): Buffer {
  const frame = isWide ? Buffer.concat([hex('44'), noise(60)]) : Buffer.concat([hex('3c'), noise(31)]);
  return Buffer.concat([ascii(isWide ? '#!AMR-WB\n' : '#!AMR\n'), repeated(50, () => frame)]);
}

/** RFC 3625: a frame of 35 bytes begins with its rate. */
export function qcp(): Buffer {
  const guid = hex('416d7f5e15b1d011ba9100805fb4b97e');
  const format = [
    ...[hex('0100'), guid, le(2, 2), ascii('Qcelp 13K'.padEnd(80, '\0')), le(2, 14_000, 35, 160, 8000, 16)],
    ...[le(4, 1), hex('2204'), Buffer.alloc(14 + 20)],
  ];
  const data = repeated(50, (nth) => Buffer.concat([hex('04'), noise(33, nth), hex('00')]));
  const chunks = [
    ascii('QLCM'),
    chunk('fmt ', Buffer.concat(format)),
    chunk('vrat', le(4, 0, 50)),
    chunk('data', data),
  ];
  const all = Buffer.concat(chunks);
  return Buffer.concat([ascii('RIFF'), le(4, all.length), all]);
}

/** Creative's VOC, block type 1. @param codec 1 to 3: ADPCM of 4, 2.6 and 2 bits */
export function voc(codec: number): Buffer {
  const block = Buffer.concat([le(1, 165, codec), noise(4000)]);
  const head = [ascii('Creative Voice File\x1a'), le(2, 26, 0x010a, 0x1129)];
  return Buffer.concat([...head, hex('01'), le(3, block.length), block, hex('00')]);
}

// DSD: one bit a sample. Half of them are 1: silence.

const DSD_RATE = 2_822_400;

/** Sony's DSF 1.01. @param order 1: the first sample is the lowest bit; 8: the highest */
export function dsf(order: 1 | 8): Buffer {
  const blocks = 16;
  const data = Buffer.alloc(2 * blocks * 4096, 0x69);
  const samples = blocks * 4096 * 8;
  const format = [
    ascii('fmt '),
    le(8, 52),
    le(4, 1, 0, 2, 2, DSD_RATE, order),
    le(8, samples),
    le(4, 4096, 0),
  ];
  const head = [ascii('DSD '), le(8, 28, 28 + 52 + 12 + data.length, 0)];
  return Buffer.concat([...head, ...format, ascii('data'), le(8, 12 + data.length), data]);
}

/** Philips' DSDIFF 1.5, as it is or in frames of DST, which may hold it as it is. */
export function dsdiff(isDst: boolean): Buffer {
  const part = (id: string, ...content: readonly Buffer[]): Buffer => {
    const bytes = Buffer.concat(content);
    return Buffer.concat([ascii(id), be(8, bytes.length), bytes, Buffer.alloc(bytes.length % 2)]);
  };
  const name = isDst ? 'DST ' : 'DSD ';
  const properties = part(
    'PROP',
    ascii('SND '),
    part('FS  ', be(4, DSD_RATE)),
    part('CHNL', be(2, 2), ascii('SLFTSRGT')),
    part('CMPR', ascii(name), be(1, 0), be(1, 0)),
  );
  const frame = Buffer.alloc((2 * DSD_RATE) / 75 / 8, 0x69);
  const frames = repeated(20, () => (isDst ? part('DSTF', Buffer.from([0]), frame) : frame));
  const sound = isDst ? part(name, part('FRTE', be(4, 20), be(2, 75)), frames) : part(name, frames);
  const all = [ascii('DSD '), part('FVER', be(4, 0x01050000)), properties, sound];
  return part('FRM8', ...all);
}

/** Monkey's Audio 3.99: a frame that says of both channels that they are silent. */
export function ape(): Buffer {
  const frame = le(4, 0x8000_0000, 3, 0, 0, 0);
  const samples = 44_100;
  const head = [ascii('MAC '), le(2, 3990, 0), le(4, 52, 24, 4, 0, frame.length, 0, 0), Buffer.alloc(16)];
  const about = [le(2, 1000, 0), le(4, 73_728, samples, 1), le(2, 16, 2), le(4, 44_100)];
  return Buffer.concat([...head, ...about, le(4, 52 + 24 + 4), frame]);
}

/** Musepack, stream version 7: words of 32 bits, lowest byte first. Each frame has one empty band. */
export function mpc7(): Buffer {
  const frames = 40;
  const head = [ascii('MP+\x07'), le(4, frames), Buffer.alloc(16)];
  const bits = `00000000${`${binary(8, 20)}00000000`.repeat(frames)}${'0'.repeat(96)}`;
  return Buffer.concat([...head, packed(bits.slice(0, bits.length & ~31)).swap32()]);
}

/** Musepack, stream version 8: packets of one frame without a band. */
export function mpc8(): Buffer {
  const part = (key: string, content: Buffer) =>
    Buffer.concat([ascii(key), be(1, content.length + 3), content]);
  const frames = 40;
  const samples = frames * 1152;
  // Seven bits a byte, the highest first: CRC, version, samples, silence, rate and bands, channels.
  const size = Buffer.from([0x80 | (samples >> 14), 0x80 | ((samples >> 7) & 0x7f), samples & 0x7f]);
  const header = Buffer.concat([Buffer.alloc(4), hex('08'), size, hex('00 00 10')]);
  const sound = repeated(frames, () => part('AP', Buffer.alloc(8)));
  return Buffer.concat([ascii('MPCK'), part('SH', header), sound, part('SE', Buffer.alloc(0))]);
}

/** CRC-24 of RFC 9580 section 6.1.1. */
function crc24(bytes: Buffer): Buffer {
  let crc = 0xb704ce;
  for (const byte of bytes) {
    crc ^= byte << 16;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc & 0x80_0000 ? 0x186_4cfb : 0);
  }
  return be(3, crc & 0xff_ffff);
}

/** TAK: one frame of a quarter of a second, neither filtered nor predicted. Bits, lowest first. */
export function tak(): Buffer {
  const lowFirst = (...fields: readonly (readonly [value: number, length: number])[]): Buffer => {
    const bits = fields.map(([value, length]) => [...binary(value, length)].reverse().join('')).join('');
    return Buffer.from(
      packed(bits).map((byte) => Number.parseInt([...binary(byte, 8)].reverse().join(''), 2)),
    );
  };
  const samples = 11_025;
  // Codec, profile, frame's length, samples; PCM, rate − 6000, bits − 8, channels − 1, no layout.
  const about = [
    [2, 6],
    [0, 4],
    [3, 4],
    [samples, 35],
    [0, 3],
    [44_100 - 6000, 18],
    [8, 5],
    [0, 4],
    [0, 1],
  ] as const;
  const info = lowFirst(...about);
  const block = Buffer.concat([hex('01'), le(3, info.length + 3), info, crc24(info).reverse()]);
  // Sync, last and with the above in it, number, samples, reserved; no metadata.
  const head = lowFirst([0xa0ff, 16], [3, 3], [0, 21], [samples - 1, 14], [0, 2], ...about, [0, 6]);
  // Nothing shifted, the first sample, no prediction, one part, no filter, one code: of 14 bits each.
  const residues = [...noise(samples - 1)].map((byte) => [byte * 40, 14] as const);
  const body = lowFirst([0, 1], [0, 16], [0, 2], [0, 3], [0, 1], [0, 1], [25, 6], ...residues);
  const frame = [head, crc24(head), body, crc24(body)];
  return Buffer.concat([ascii('tBaK'), block, hex('00 000000'), ...frame]);
}

/** Shorten 2 (Robinson, 1994): the head of a WAV, then blocks of zeros. */
export function shorten(): Buffer {
  const rice = (value: number, k: number): string =>
    `${'0'.repeat(value >> k)}1${k === 0 ? '' : binary(value & ((1 << k) - 1), k)}`;
  const number = (value: number): string => {
    const k = Math.max(0, value.toString(2).length - 1);
    return rice(k, 2) + rice(value, k);
  };
  const blocks = 100;
  const header = wav(1, { rate: 44_100, bytes: 2, samples: 1, payload: Buffer.alloc(0) }).subarray(0, 46);
  // 16 bits with the lowest byte first, mono, 256 samples a block, no prediction, mean or bytes to skip.
  const about = [5, 1, 256, 0, 0, 0].map(number).join('');
  const verbatim = rice(9, 2) + rice(header.length, 5) + [...header].map((byte) => rice(byte, 8)).join('');
  const bits = about + verbatim + rice(8, 2).repeat(blocks) + rice(4, 2);
  return Buffer.concat([ascii('ajkg\x02'), packed(bits), Buffer.alloc(64)]);
}

// RealMedia: RMFF, with a header of RealAudio 5 or of RealAudio Lossless for the stream.

interface RealStream extends Packets {
  readonly codec: string;
  readonly interleaver: string;
  readonly flavor?: number;
  /** Rows of packets that are put in another order together. */
  readonly rows: number;
  readonly rowBytes: number;
  readonly kbps?: number;
}

/** What stands in front of a stream's packets. */
function realAudio(stream: RealStream): Buffer {
  const { codec, interleaver, flavor = 0, rows, rowBytes, bytes, rate, channels = 1, kbps = 8 } = stream;
  const extra = stream.extra ?? Buffer.alloc(0);
  const coded = Math.round((rowBytes * 2) / rows);
  return Buffer.concat([
    ...[
      ascii('.ra\xfd'),
      be(2, 5, 0),
      ascii('.ra5'),
      be(4, 0),
      be(2, 5),
      be(4, 0),
      be(2, flavor),
      be(4, coded),
    ],
    ...[be(4, 0, (kbps * 1000 * 60) / 8, 0), be(2, rows, rowBytes, bytes, 0, 0, 0, 0, rate), be(4, 16)],
    ...[be(2, channels), ascii(interleaver), ascii(codec), be(4, 0), be(4, extra.length), extra],
  ]);
}

/** @param rows that belong together */
function realMedia(codecData: Buffer, packets: readonly Buffer[], rows = 1): Buffer {
  const part = (id: string, content: Buffer) =>
    Buffer.concat([ascii(id), be(4, content.length + 10), be(2, 0), content]);
  const text = (value: string) => Buffer.concat([be(1, value.length), ascii(value)]);
  const stream = [be(2, 0), be(4, 0, 0, 0, 0, 0, 0, 1000), text('Audio'), text('audio/x-pn-realaudio')];
  const properties = Buffer.concat([be(4, 0, 0, 0, 0, packets.length, 1000, 0, 0, 0), be(2, 1, 0)]);
  const bodies = packets.map((packet, nth) =>
    Buffer.concat([
      be(2, 0, packet.length + 12, 0),
      be(4, nth * 100),
      hex(nth % rows === 0 ? '0002' : '0000'),
      packet,
    ]),
  );
  return Buffer.concat([
    part('.RMF', be(4, 0, 3)),
    part('PROP', properties),
    part('MDPR', Buffer.concat([...stream, be(4, codecData.length), codecData])),
    part('DATA', Buffer.concat([be(4, packets.length, 0), ...bodies])),
  ]);
}

/** One row a packet. */
function realStream(stream: RealStream): Buffer {
  const rows = Array.from({ length: stream.payload.length / stream.rowBytes }, (_, nth) =>
    stream.payload.subarray(nth * stream.rowBytes, (nth + 1) * stream.rowBytes),
  );
  return realMedia(realAudio(stream), rows, stream.rows);
}

export function ra288(): Buffer {
  const payload = noise(12 * 228);
  const shape = { rate: 8000, bytes: 38, samples: 160, rows: 12, rowBytes: 228 };
  return realStream({ codec: '28_8', interleaver: 'Int4', ...shape, payload });
}

export function sipr(): Buffer {
  const payload = noise(6 * 232);
  const shape = { rate: 8000, bytes: 29, samples: 288, rows: 6, rowBytes: 232, kbps: 6.5 };
  return realStream({ codec: 'sipr', interleaver: 'sipr', ...shape, payload });
}

/** Mono: version, samples of a frame, bands. */
export function cook(): Buffer {
  const payload = noise(8 * 480);
  const extra = Buffer.concat([be(4, 0x0100_0001), be(2, 256, 12)]);
  const shape = { rate: 8000, bytes: 48, samples: 256, rows: 8, rowBytes: 480, extra };
  return realStream({ codec: 'cook', interleaver: 'genr', ...shape, payload });
}

/** RealAudio Lossless: blocks of 4096 equal samples, by the codes of no filter and of a mean of 7. */
export function ralf(): Buffer {
  const about = [ascii('LSD:'), be(2, 0x103, 0, 1, 0), be(4, 44_100, 4096), be(4, 0)];
  const block = packed(`0${'00000'}${'000'}${binary(7, 4)}`);
  // A table of one block: its size in 14 bits, and that it follows the one before.
  const packet = Buffer.concat([be(2, 15), packed(`${binary(block.length, 14)}0`), block, Buffer.alloc(1)]);
  return realMedia(Buffer.concat(about), Array<Buffer>(20).fill(packet));
}

/** Sony's ATRAC3 in a WAV: each channel begins with a mark, and has no band. */
export function atrac3(): Buffer {
  const channel = Buffer.concat([hex('a0'), Buffer.alloc(191)]);
  const extra = Buffer.concat([le(2, 1), le(4, 1024), le(2, 0, 0, 1, 0)]);
  const payload = repeated(80, () => channel);
  return wav(0x270, { rate: 44_100, channels: 2, bytes: 384, samples: 1024, bits: 0, extra, payload });
}

/** Windows Media Audio Pro: numbered packets of silence, one subframe each, without a mask of channels. */
export function wmaPro(): Buffer {
  const payload = repeated(100, (nth) => Buffer.from([(nth & 15) << 4, ...Array<number>(255).fill(0)]));
  const extra = Buffer.concat([le(2, 16), Buffer.alloc(16)]);
  return wav(0x162, { rate: 44_100, channels: 2, bytes: 256, samples: 2048, extra, payload });
}

/**
 * Windows Media Audio Lossless: numbered packets of one frame each, whose samples stand as they are.
 * A real one, tests/data/lossless.wma of TagLib, was decoded by hand: SHA-256
 * ecf335b03128133afd1dea0a82d9a1b7d15fd161e5ae44614a258d60247135d0.
 */
export function wmaLossless(): Buffer {
  const [samples, bytes] = [2048, 4104];
  // The whole frame with this number and two bits at its end: a packet behind its 22 bits.
  const length = binary(bytes * 8 - 22, 16);
  const payload = repeated(20, (nth) => {
    const sound = [...noise(samples * 2, nth)].map((byte) => binary(byte, 8)).join('');
    const packet = `${binary(nth & 15, 4)}00${binary(0, 16)}`;
    // Aligned, 0 samples skipped in front and none behind, as they are, of which 0 bits are left out.
    return packed(`${packet}${length}1${'11'}${binary(0, 12)}0${'01'}1${binary(0, 5)}${sound}00`);
  });
  const extra = Buffer.concat([le(2, 16), le(4, 4), Buffer.alloc(8), le(2, 0x40), le(2, 0)]);
  return wav(0x163, { rate: 44_100, bytes, samples, extra, payload });
}

/** Windows Media Audio Voice: packets of one superframe, marked as speech. */
export function wmaVoice(): Buffer {
  // Which kind of frame each of 17 codes is.
  const tree = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5].map((kind) => binary(kind, 3)).join('');
  const extra = Buffer.concat([Buffer.alloc(22), packed(tree.padEnd(192, '0'))]);
  // Sequence, own LSPs, one superframe, no bits of the one before; speech, of the usual length.
  const head = `${'0000'}${'0'}${'000001'}${'000000000'}${'10'}`;
  const bits = (nth: number) => [...noise(64, nth)].map((byte) => binary(byte, 8)).join('');
  const payload = repeated(100, (nth) => packed(head + bits(nth).slice(head.length)));
  return wav(0x0a, { rate: 8000, bytes: 64, samples: 480, extra, payload });
}

export const truespeech = (): Buffer =>
  wav(0x22, { rate: 8000, bytes: 32, samples: 240, bits: 1, extra: Buffer.alloc(32), payload: noise(3200) });

export const ilbc = (): Buffer =>
  caf('ilbc', { rate: 8000, bytes: 38, samples: 160, payload: noise(50 * 38) });

export const mace = (ratio: 3 | 6): Buffer =>
  caf(`MAC${ratio}`, { rate: 22_050, bytes: ratio === 3 ? 2 : 1, samples: 6, payload: noise(4000) });

/** QuickTime's description of QDesign Music 2: channels, rate, bitrate, block, frame, packet. */
const QDESIGN = Buffer.concat([
  ...[be(4, 12), ascii('frmaQDM2'), be(4, 36), ascii('QDCA'), be(4, 1, 1, 44_100, 48_000, 4096, 256, 370)],
  ...[be(4, 36), ascii('QDCP'), Buffer.alloc(28)],
]);

/** A superblock of type 3, which has no checksum, and nothing in it. */
export function qdm2(): Buffer {
  const packet = Buffer.concat([hex('03 02 0000'), Buffer.alloc(366)]);
  const shape = { rate: 44_100, bytes: 370, samples: 4096, extra: QDESIGN };
  return caf('QDM2', { ...shape, payload: repeated(20, () => packet) });
}

/** Half and 24-bit floating-point samples, as Cool Edit wrote them. */
export function coolEdit(bits: 16 | 24): Buffer {
  const extra = bits === 16 ? le(2, 1) : undefined;
  const shape = { rate: 44_100, bytes: 4, samples: 1, bits: bits === 16 ? 32 : 24 };
  return wav(1, { ...shape, ...(extra && { extra }), payload: Buffer.alloc(44_100 * 4, hex('0040 0042')) });
}

/** ISO/IEC 11172-3 layer I: 48 kHz, 384 kbit/s, silence. */
export const layer1 = (): Buffer => repeated(60, () => Buffer.concat([hex('ffffc404'), Buffer.alloc(380)]));
