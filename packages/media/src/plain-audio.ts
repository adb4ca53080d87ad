/**
 * What ffprobe would answer about plain WAV, FLAC and Ogg Opus, whose headers say it all: one or
 * two channels, from second 0 on. Whatever is odd is left to ffprobe, whose start takes longer than
 * the reading of either.
 */
import { isUtf8 } from 'node:buffer';
import type { FfprobeAnswer, FfprobeStream, Tags } from './ffprobe.ts';
import { LocalBytes } from './local-bytes.ts';
import { packetSamples } from './ogg/opus-frames.ts';
import { AT, FIRST, HEADER_BYTES, isIntact, LAST, pageHead, streamOf } from './ogg/pages.ts';
import { UnsupportedLayout } from './sparse/mp4/boxes.ts';
import type { LocalFile } from './truncation.ts';

/**
 * @param mostBytes that are read; default: as many as it takes
 * @returns null for any other file
 * @throws {NotInPlace} where it takes more
 */
export async function plainAudio(
  { path, demuxer, sizeBytes }: LocalFile,
  mostBytes?: number,
): Promise<FfprobeAnswer | null> {
  const read = FORMS[demuxer];
  if (read === undefined) return null;
  await using file = await LocalBytes.open(path, mostBytes);
  try {
    const found = await read(file, sizeBytes);
    return found === null ? null : answerOf(found);
  } catch (error) {
    if (error instanceof UnsupportedLayout || error instanceof RangeError) return null;
    throw error;
  }
}

interface Found {
  readonly sound: Partial<FfprobeStream> & { readonly sample_rate: number };
  /** At that rate. */
  readonly samples: number;
  readonly tags?: { readonly ofFile?: Tags; readonly ofTrack?: Tags };
}

const FORMS: Readonly<Record<string, (file: LocalBytes, sizeBytes: number) => Promise<Found | null>>> = {
  wav,
  flac,
  ogg,
};

function answerOf({ sound, samples, tags = {} }: Found): FfprobeAnswer {
  const duration = Number((samples / sound.sample_rate).toFixed(6));
  const start = 'start_time' in sound ? { start_time: 0 } : {};
  return {
    format: { ...start, duration, tags: tags.ofFile ?? {} },
    streams: [
      {
        index: 0,
        codec_type: 'audio',
        codec_tag_string: '[0][0][0][0]',
        codec_tag: '0x0000',
        ...sound,
        duration,
        disposition: { default: 0, attached_pic: 0 },
        side_data_list: [],
        tags: tags.ofTrack ?? {},
      },
    ],
    chapters: [],
    library_versions: [],
  };
}

const LAYOUTS = ['', 'mono', 'stereo'];

// WAV: "Multimedia Programming Interface and Data Specifications 1.0", 1991.

const PCM = 1;
const FORM_BYTES = 16;
const CODECS: Readonly<Record<number, { codec_name: string; sample_fmt: string }>> = {
  16: { codec_name: 'pcm_s16le', sample_fmt: 's16' },
  24: { codec_name: 'pcm_s24le', sample_fmt: 's32' },
};
/** In front of the samples, and bytes of each. */
const WAV_CHUNKS = 8;
const MOST_CHUNK_BYTES = 32 * 1024;
/** ffmpeg looks so far for another codec in samples of PCM. */
const LISTENED_BYTES = 32 * 1024;
/** DTS in its four forms (ETSI TS 102 114 section 5.3), and IEC 61937. */
const OTHER_SOUND = ['7ffe8001', 'fe7f0180', '1fffe800', 'ff1f00e8', '72f81f4e'].map((sync) =>
  Buffer.from(sync, 'hex'),
);

async function wav(file: LocalBytes, sizeBytes: number): Promise<Found | null> {
  const head = await file.at(0, 12);
  if (head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8) !== 'WAVE') return null;
  let form: Buffer | undefined;
  let tags: Tags | undefined;
  let at = 12;
  for (let chunk = 0; chunk < WAV_CHUNKS; chunk += 1) {
    const place = await file.at(at, 8);
    const [type, bytes] = [place.toString('latin1', 0, 4), place.readUInt32LE(4)];
    at += 8;
    if (type === 'data') return form ? pcm(file, { form, tags: tags ?? {}, at, bytes, sizeBytes }) : null;
    if (bytes > MOST_CHUNK_BYTES) return null;
    if (type === 'fmt ' && form === undefined) form = await file.at(at, bytes);
    else if (type === 'LIST' && tags === undefined) tags = infoTags(await file.at(at, bytes));
    else return null;
    at += bytes + (bytes & 1);
  }
  return null;
}

interface Samples {
  readonly form: Buffer;
  readonly tags: Tags;
  readonly at: number;
  readonly bytes: number;
  readonly sizeBytes: number;
}

async function pcm(file: LocalBytes, { form, tags, at, bytes, sizeBytes }: Samples): Promise<Found | null> {
  const [tag, channels, sample_rate] = [form.readUInt16LE(0), form.readUInt16LE(2), form.readUInt32LE(4)];
  const [perSecond, perBlock, bits] = [form.readUInt32LE(8), form.readUInt16LE(12), form.readUInt16LE(14)];
  const codec = CODECS[bits];
  const isPlain =
    form.length === FORM_BYTES &&
    tag === PCM &&
    codec !== undefined &&
    (channels === 1 || channels === 2) &&
    sample_rate > 0 &&
    perBlock === (channels * bits) / 8 &&
    perSecond === perBlock * sample_rate &&
    at + bytes === sizeBytes &&
    bytes > 0 &&
    bytes % perBlock === 0;
  if (!isPlain) return null;
  const begin = await file.at(at, Math.min(bytes, LISTENED_BYTES));
  // MPEG audio, and AC-3.
  const isSync = begin[0] === 0xff || begin.readUInt16BE(0) === 0x0b77;
  if (isSync || OTHER_SOUND.some((sync) => begin.includes(sync))) return null;
  return {
    sound: {
      ...codec,
      ...{ codec_tag_string: '[1][0][0][0]', codec_tag: '0x0001', sample_rate, channels },
      ...{ bit_rate: perSecond * 8, bits_per_sample: bits },
    },
    samples: bytes / perBlock,
    tags: { ofFile: tags },
  };
}

const INFO: Readonly<Record<string, string>> = {
  IART: 'artist',
  ICMT: 'comment',
  ICRD: 'date',
  IGNR: 'genre',
  INAM: 'title',
  IPRD: 'album',
  ISFT: 'encoder',
};

function infoTags(list: Buffer): Tags {
  if (list.toString('latin1', 0, 4) !== 'INFO') throw new UnsupportedLayout('another list');
  const tags: Record<string, string> = {};
  for (let at = 4; at < list.length; ) {
    const name = INFO[list.toString('latin1', at, at + 4)];
    const bytes = list.readUInt32LE(at + 4);
    const text = /^([\x20-\x7e]+)\0*$/.exec(list.toString('latin1', at + 8, at + 8 + bytes))?.[1];
    at += 8 + bytes + (bytes & 1);
    if (name === undefined || text === undefined || name in tags || at > list.length + 1) {
      throw new UnsupportedLayout('an odd tag');
    }
    tags[name] = text;
  }
  return tags;
}

// FLAC (RFC 9639 section 8).

const BLOCK = { streamInfo: 0, padding: 1, seekTable: 3, comment: 4 };
const MOST_BLOCKS = 8;
const STREAM_INFO_BYTES = 34;
/** By the codes of a frame's header (section 9.1); 0 says as the file's. */
const FRAME_RATES = [8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];
const FIRST_FRAME_RATE = 4;
const FRAME_BITS: Readonly<Record<number, number>> = { 4: 16, 6: 24 };
/** Two channels, or one and what sets the other apart. */
const FRAME_CHANNELS: Readonly<Record<number, number>> = { 0: 1, 1: 2, 8: 2, 9: 2, 10: 2 };

async function flac(file: LocalBytes): Promise<Found | null> {
  if ((await file.at(0, 4)).toString('latin1') !== 'fLaC') return null;
  let info: Buffer | undefined;
  let tags: Tags | undefined;
  let at = 4;
  for (let block = 0; block < MOST_BLOCKS; block += 1) {
    const head = (await file.at(at, 4)).readUInt32BE(0);
    const [type, bytes] = [(head >>> 24) & 127, head & 0xff_ffff];
    at += 4;
    if (type === BLOCK.streamInfo && info === undefined) info = await file.at(at, bytes);
    else if (type === BLOCK.comment && tags === undefined) tags = commentTags(await file.at(at, bytes));
    else if (type !== BLOCK.padding && type !== BLOCK.seekTable) return null;
    at += bytes;
    if (head >>> 31 === 1) {
      const frame = (await file.at(at, 4)).readUInt32BE(0);
      return info ? streamInfo(info, tags ?? {}, frame) : null;
    }
  }
  return null;
}

/** Whether the first frame begins here, and says what the file does: decoders go by the frame. */
function beginsAsSaid(frame: number, rate: number, channels: number, bits: number): boolean {
  const [rateCode, channelCode, bitsCode] = [(frame >> 8) & 15, (frame >> 4) & 15, (frame >> 1) & 7];
  return (
    ((frame >>> 16) & 0xfffe) === 0xfff8 &&
    (rateCode === 0 || FRAME_RATES[rateCode - FIRST_FRAME_RATE] === rate) &&
    FRAME_CHANNELS[channelCode] === channels &&
    (bitsCode === 0 || FRAME_BITS[bitsCode] === bits)
  );
}

function streamInfo(info: Buffer, tags: Tags, frame: number): Found | null {
  if (info.length !== STREAM_INFO_BYTES) return null;
  const packed = info.readBigUInt64BE(10);
  const samples = Number(packed & 0xf_ffff_ffffn);
  const sample_rate = Number(packed >> 44n);
  const channels = Number((packed >> 41n) & 7n) + 1;
  const bits = Number((packed >> 36n) & 31n) + 1;
  const isPlain = samples > 0 && [16, 24].includes(bits) && beginsAsSaid(frame, sample_rate, channels, bits);
  if (!isPlain) return null;
  return {
    sound: {
      ...{ codec_name: 'flac', sample_fmt: bits === 16 ? 's16' : 's32', sample_rate, channels },
      ...{ channel_layout: LAYOUTS[channels], bits_per_sample: 0, bits_per_raw_sample: bits, start_time: 0 },
    },
    samples,
    tags: { ofFile: tags },
  };
}

/** Of Vorbis comments (RFC 9639 section 8.6), under the names that ffmpeg keeps. */
const COMMENTS = /^(ALBUM|ARTIST|COMMENT|COMPOSER|DATE|ENCODER|GENRE|ISRC|LANGUAGE|TITLE)$/i;
/** And those that it changes. */
const RENAMED: Readonly<Record<string, string>> = {
  ALBUMARTIST: 'album_artist',
  DESCRIPTION: 'comment',
  DISCNUMBER: 'disc',
  TRACKNUMBER: 'track',
};

function commentTags(bytes: Buffer): Tags {
  let at = 4 + bytes.readUInt32LE(0);
  const count = bytes.readUInt32LE(at);
  at += 4;
  const tags: Record<string, string> = {};
  for (let nth = 0; nth < count; nth += 1) {
    const length = bytes.readUInt32LE(at);
    const text = bytes.subarray(at + 4, at + 4 + length);
    at += 4 + length;
    const equals = text.indexOf('=');
    const field = text.toString('latin1', 0, Math.max(0, equals));
    const name = RENAMED[field.toUpperCase()] ?? (COMMENTS.test(field) ? field : undefined);
    const value = text.subarray(equals + 1);
    const isTaken = Object.keys(tags).some((other) => other.toLowerCase() === name?.toLowerCase());
    if (
      name === undefined ||
      isTaken ||
      at > bytes.length ||
      value.length === 0 ||
      value.includes(0) ||
      !isUtf8(value)
    ) {
      throw new UnsupportedLayout('an odd tag');
    }
    tags[name] = value.toString();
  }
  return tags;
}

// Ogg Opus (RFC 7845 sections 3 to 5).

const OPUS_RATE = 48_000;
const OPUS_TAGS = 'OpusTags';
/** For the last page: a second of Opus has 64 KiB at most, and mostly far less. */
const TAIL_BYTES = 20 * 1024;

/** One stream, whose packets begin at second 0. Its last page tells the end. */
async function ogg(file: LocalBytes, sizeBytes: number): Promise<Found | null> {
  const first = await oggPageAt(file, 0);
  const second = await oggPageAt(file, first.end);
  const third = await oggPageAt(file, second.end);
  const head = onlyPacket(first);
  const comments = onlyPacket(second);
  const isPlain =
    first.flags === FIRST &&
    isOpusHead(head) &&
    comments.toString('latin1', 0, OPUS_TAGS.length) === OPUS_TAGS &&
    // A page that ends a stream has a shorter last packet.
    [second, third].every(({ flags, serial }) => flags === 0 && serial === first.serial) &&
    third.granule === third.packets.reduce((sum, packet) => sum + packetSamples(packet), 0);
  if (!isPlain) return null;
  const tags = commentTags(comments.subarray(OPUS_TAGS.length));
  const last = await lastPage(file, sizeBytes);
  if (last?.serial !== first.serial || last.flags !== LAST || last.granule <= third.granule) return null;
  const channels = head.readUInt8(9);
  return {
    sound: {
      ...{ codec_name: 'opus', sample_fmt: 'fltp', sample_rate: OPUS_RATE, channels },
      ...{ channel_layout: LAYOUTS[channels], bits_per_sample: 0, start_time: 0 },
    },
    samples: last.granule,
    tags: { ofTrack: tags },
  };
}

/** Version 1, of channel mapping family 0 (section 5.1). */
function isOpusHead(head: Buffer): boolean {
  const magic = head.toString('latin1', 0, 8);
  return (
    head.length === 19 &&
    magic === 'OpusHead' &&
    head[8] === 1 &&
    (head[9] === 1 || head[9] === 2) &&
    head[18] === 0
  );
}

interface Page {
  readonly flags: number;
  readonly serial: number;
  readonly granule: number;
  readonly packets: readonly Buffer[];
  readonly end: number;
}

/** @throws {UnsupportedLayout} where no intact page begins, or one whose last packet goes on behind it */
async function oggPageAt(file: LocalBytes, at: number): Promise<Page> {
  const segments = (await file.at(at, HEADER_BYTES)).readUInt8(AT.segments);
  const table = (await file.at(at, HEADER_BYTES + segments)).subarray(HEADER_BYTES);
  const bytes = table.reduce((sum, lacing) => sum + lacing, HEADER_BYTES + segments);
  const page = await file.at(at, bytes);
  if (
    page.length < bytes ||
    page.toString('latin1', 0, 4) !== 'OggS' ||
    table.at(-1) === 255 ||
    !isIntact(page)
  ) {
    throw new UnsupportedLayout('no such page');
  }
  const { granule, bodyAt } = pageHead(page);
  const packets: Buffer[] = [];
  let [from, to] = [bodyAt, bodyAt];
  for (const lacing of table) {
    to += lacing;
    if (lacing === 255) continue;
    packets.push(page.subarray(from, to));
    from = to;
  }
  const { serial } = streamOf(page);
  return { flags: page.readUInt8(AT.flags), serial, granule, packets, end: at + bytes };
}

function onlyPacket({ packets: [packet, ...others] }: Page): Buffer {
  if (packet === undefined || others.length > 0) throw new UnsupportedLayout('no page of one packet');
  return packet;
}

async function lastPage(file: LocalBytes, sizeBytes: number): Promise<Page | undefined> {
  const from = Math.max(0, sizeBytes - TAIL_BYTES);
  const at = (await file.at(from, sizeBytes - from)).lastIndexOf('OggS');
  const page = at < 0 ? undefined : await oggPageAt(file, from + at);
  return page?.end === sizeBytes ? page : undefined;
}
