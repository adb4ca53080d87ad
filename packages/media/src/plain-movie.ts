/**
 * What ffprobe would answer about a plain MP4, whose index says it all: AAC-LC in one or two
 * channels, and pictures, from second 0 on. A start of ffprobe takes 60 to 100 ms, as long as a
 * copy of a clip. Whatever is odd is left to ffprobe.
 */
import { isUtf8 } from 'node:buffer';
import type { FfprobeAnswer, FfprobeStream, Tags } from './ffprobe.ts';
import { LocalBytes } from './local-bytes.ts';
import {
  type Box,
  childrenOf,
  Fields,
  latin1,
  onlyBox,
  requiredBox,
  tableOf,
  UnsupportedLayout,
} from './sparse/mp4/boxes.ts';
import { readTracks, type SampleTable } from './sparse/mp4/tracks.ts';
import { type LocalFile, movieBox, topLevelBoxes } from './truncation.ts';

/**
 * @param mostBytes that are read; default: as many as it takes
 * @returns null for any other file
 * @throws {NotInPlace} where it takes more
 */
export async function plainMovie(
  { path, sizeBytes }: LocalFile,
  mostBytes?: number,
): Promise<FfprobeAnswer | null> {
  await using file = await LocalBytes.open(path, mostBytes);
  try {
    return await answerOf(file, sizeBytes);
  } catch (error) {
    if (error instanceof UnsupportedLayout || error instanceof RangeError) return null;
    throw error;
  }
}

function odd(what: string): UnsupportedLayout {
  return new UnsupportedLayout(what);
}

const TOP_LEVEL = new Set(['ftyp', 'moov', 'mdat', 'free', 'skip', 'wide']);
const IN_MOVIE = new Set(['mvhd', 'trak', 'udta', 'iods', 'free']);
const IN_TRACK = new Set(['tkhd', 'edts', 'mdia', 'free']);
const IN_MEDIA = new Set(['mdhd', 'hdlr', 'minf']);
const IN_TABLES = new Set(['stsd', 'stts', 'ctts', 'stss', 'stsc', 'stsz', 'stco', 'co64', 'sgpd', 'sbgp']);

/** QuickTime has its own forms of text, languages and handlers. */
const BRANDS = /^(isom|iso2|iso4|iso5|iso6|mp41|mp42|M4A |M4V )$/;

async function answerOf(file: LocalBytes, sizeBytes: number): Promise<FfprobeAnswer | null> {
  const places = new Map<string, { at: number; end: number }>();
  let end = 0;
  for await (const box of topLevelBoxes(file, sizeBytes)) {
    if (!TOP_LEVEL.has(box.type) || (places.has(box.type) && box.type !== 'free')) return null;
    places.set(box.type, box);
    end = box.end;
  }
  const [movie, brand] = [places.get('moov'), places.get('ftyp')];
  if (end !== sizeBytes || movie === undefined || brand?.at !== 0 || brand.end > MAX_BRAND_BYTES) return null;
  const payload = await movieBox(file, movie);
  if (payload === undefined) return null;
  const boxes = known(childrenOf(payload), IN_MOVIE);
  const tables = readTracks(payload);
  const header = times(requiredBox(boxes, 'mvhd'));
  const traks = boxes.filter(({ type }) => type === 'trak');
  const streams: FfprobeStream[] = [];
  for (const [index, trak] of traks.entries()) {
    const samples = tables[index]?.samples;
    if (samples === undefined || samples.countsFrames || samples.sizes.count === 0) return null;
    const stream = await streamOf(file, trak, { index, samples, movieScale: header.scale, sizeBytes });
    streams.push(stream);
  }
  // As ffmpeg 7.1: 5.1 goes by the movie's header, which counts pictures that were cut off.
  const duration = Math.max(...streams.map((stream) => stream.duration ?? 0));
  if (header.duration + ROUNDED_TICKS < duration * header.scale) return null;
  const user = onlyBox(boxes, 'udta');
  return {
    format: {
      start_time: 0,
      duration,
      tags: {
        ...brandTags(await file.at(8, brand.end - 8)),
        ...createdTag(header.created),
        ...(user === undefined ? {} : textTags(user)),
      },
    },
    streams,
    chapters: [],
    library_versions: [],
  };
}

const ROUNDED_TICKS = 2;

/** As ffprobe prints them. */
function seconds(ticks: number, scale: number): number {
  return Number((ticks / scale).toFixed(6));
}

function known(boxes: readonly Box[], types: ReadonlySet<string>): readonly Box[] {
  const other = boxes.find(({ type }) => !types.has(type));
  if (other !== undefined) throw odd(`a box ${other.type}`);
  return boxes;
}

// A track.

interface Place {
  readonly index: number;
  readonly samples: SampleTable;
  readonly movieScale: number;
  readonly sizeBytes: number;
}

async function streamOf(file: LocalBytes, trak: Box, place: Place): Promise<FfprobeStream> {
  const boxes = known(childrenOf(trak.payload), IN_TRACK);
  const media = known(childrenOf(requiredBox(boxes, 'mdia').payload), IN_MEDIA);
  const inner = childrenOf(requiredBox(media, 'minf').payload);
  const tables = known(childrenOf(requiredBox(inner, 'stbl').payload), IN_TABLES);
  if (!isInThisFile(inner)) throw odd('samples of another file');
  const { index, samples, sizeBytes } = place;
  const bytes = extent(samples);
  if (bytes.end > sizeBytes) throw odd('samples beyond the end');
  const handler = requiredBox(media, 'hdlr').payload;
  const type = latin1(handler, 8);
  const isPictures = type === 'vide';
  const edits = onlyBox(boxes, 'edts');
  const clock = clockOf(requiredBox(media, 'mdhd'), tables, edits, { ...place, isPictures });
  const header = requiredBox(boxes, 'tkhd').payload;
  const stream = {
    index,
    id: `0x${idOf(header).toString(16)}`,
    start_time: 0,
    disposition: { default: (header[3] ?? 0) & 1, attached_pic: 0 },
    side_data_list: [],
  };
  const entry = onlyEntry(requiredBox(tables, 'stsd'));
  if (isPictures) {
    requirePictures(entry);
    return { ...stream, codec_type: 'video', duration: seconds(clock.ticks, clock.scale), tags: {} };
  }
  if (type !== 'soun' || entry.type !== 'mp4a') throw odd(`a track ${type} of ${entry.type}`);
  const sound = aacOf(entry.payload);
  if (sound.sample_rate !== clock.scale) throw odd('a scale other than its rate');
  const first = await file.at(samples.offsets[0] ?? 0, Math.min(samples.sizes.of(0), MAX_FRAME_BYTES));
  if (!beginsAsSaid(first, sound.channels)) throw odd('a frame of other channels');
  return {
    ...stream,
    ...sound,
    codec_type: 'audio',
    bit_rate: Math.floor((bytes.total * 8 * clock.scale) / clock.mediaTicks),
    duration: seconds(clock.ticks, clock.scale),
    tags: {
      ...createdTag(clock.created),
      language: clock.language,
      ...handlerTag(handler),
      vendor_id: vendorOf(entry.payload),
    },
  };
}

/** Their description, without which ffprobe may not open the file; else their beginning counts. */
const PICTURES: Readonly<Record<string, string>> = {
  avc1: 'avcC',
  hvc1: 'hvcC',
  hev1: 'hvcC',
  mp4v: 'esds',
  vp09: 'vpcC',
  av01: 'av1C',
};

/** Before the boxes of a visual sample entry (ISO/IEC 14496-12 section 12.1.3). */
const VISUAL_ENTRY_BYTES = 78;

function requirePictures({ type, payload }: Box): void {
  const description = PICTURES[type];
  if (description === undefined) throw odd(`pictures of ${type}`);
  requiredBox(childrenOf(payload.subarray(VISUAL_ENTRY_BYTES)), description);
}

/** `dref` of one entry that says so (ISO/IEC 14496-12 section 8.7.2). */
function isInThisFile(inner: readonly Box[]): boolean {
  const reference = requiredBox(childrenOf(requiredBox(inner, 'dinf').payload), 'dref');
  const fields = new Fields(reference);
  fields.unsigned32();
  const [entry, ...others] = childrenOf(reference.payload.subarray(8));
  return fields.unsigned32() === 1 && others.length === 0 && entry?.type === 'url ' && entry.payload[3] === 1;
}

function extent({ sizes, offsets, firstSamples }: SampleTable): { end: number; total: number } {
  let [end, total] = [0, 0];
  for (const [chunk, offset] of offsets.entries()) {
    let at = offset;
    const next = firstSamples[chunk + 1] ?? 0;
    for (let sample = firstSamples[chunk] ?? 0; sample < next; sample += 1) at += sizes.of(sample);
    total += at - offset;
    end = Math.max(end, at);
  }
  return { end, total };
}

function idOf(tkhd: Uint8Array): number {
  const fields = new Fields({ type: 'tkhd', payload: tkhd });
  if (fields.unsigned32() >>> 24 !== 0) throw odd('times of 64 bits');
  fields.unsigned32();
  fields.unsigned32();
  return fields.unsigned32();
}

function onlyEntry(stsd: Box): Box {
  const [entry, ...others] = childrenOf(stsd.payload.subarray(8));
  const fields = new Fields(stsd);
  fields.unsigned32();
  if (entry === undefined || others.length > 0 || fields.unsigned32() !== 1)
    throw odd('several descriptions');
  return entry;
}

// Its clock.

interface Times {
  /** Seconds since 1904. */
  readonly created: number;
  readonly scale: number;
  readonly duration: number;
  readonly rest: number;
}

/** Of `mvhd` and `mdhd`, which begin alike. */
function times(box: Box): Times {
  const fields = new Fields(box);
  if (fields.unsigned32() >>> 24 !== 0) throw odd('times of 64 bits');
  const created = fields.unsigned32();
  fields.unsigned32();
  const [scale, duration, rest] = [fields.unsigned32(), fields.unsigned32(), fields.unsigned32()];
  if (scale === 0 || duration === 0 || duration > MAX_TICKS) throw odd('no duration');
  return { created, scale, duration, rest };
}

const MAX_TICKS = 0x7fff_ffff;
/** Some packets may be shown before the first one. */
const REORDERED = 32;

interface Clock extends Pick<Times, 'created' | 'scale'> {
  readonly language: string;
  /** Of all its samples. */
  readonly mediaTicks: number;
  /** Of the samples within the edit. */
  readonly ticks: number;
}

/** Begins at second 0 and goes on to the end of its samples, behind a lead that is hidden. */
function clockOf(
  mdhd: Box,
  tables: readonly Box[],
  edts: Box | undefined,
  { movieScale, samples, isPictures }: Place & { readonly isPictures: boolean },
): Clock {
  const { created, scale, duration, rest } = times(mdhd);
  const { steps, ticks } = stepsOf(tables, samples.sizes.count, duration);
  const keys = onlyBox(tables, 'stss');
  if (keys !== undefined) tableOf(keys, 32);
  const shifts = shiftsOf(tables);
  const lead = shifts[0]?.[1] ?? 0;
  const edit = edts === undefined ? undefined : editOf(edts);
  // A cut without encoding leaves out the pictures that come last.
  if (!isPictures && (keys !== undefined || shifts.length > 0 || ticks < duration)) {
    throw odd('sound out of order, or of which some is missing');
  }
  const language = languageOf(rest >>> 16);
  const clock = { created, scale, language, mediaTicks: duration };
  if (edit === undefined) {
    if (lead !== 0) throw odd('pictures that begin late');
    return { ...clock, ticks };
  }
  if (shifts.length > 0 && !beginsFirst(shifts, steps)) throw odd('pictures before the first');
  if (isPictures && edit.start !== lead) throw odd('pictures that are cut');
  const edited = Math.round((edit.duration * scale) / movieScale);
  // Pictures are shown so much later than they are decoded.
  const left = isPictures ? duration : duration - edit.start;
  const step = steps[0]?.[1] ?? 0;
  // To the end, but for rounding; less is a cut.
  if (edit.start > MAX_LEAD_FRAMES * step || Math.abs(edited - left) > Math.ceil(scale / movieScale)) {
    throw odd('samples that are cut');
  }
  return { ...clock, ticks: Math.min(ticks, edited) };
}

const MAX_LEAD_FRAMES = 4;

type Rows = readonly (readonly [count: number, value: number])[];

/** How much later each is shown than decoded. */
function shiftsOf(tables: readonly Box[]): Rows {
  const offsets = onlyBox(tables, 'ctts');
  return offsets === undefined ? [] : rows(offsets);
}

/** How long its samples last: as long as it says, at most. */
function stepsOf(tables: readonly Box[], samples: number, duration: number): { steps: Rows; ticks: number } {
  const steps = rows(requiredBox(tables, 'stts'));
  const ticks = steps.reduce((sum, [count, step]) => sum + count * step, 0);
  const counted = steps.reduce((sum, [count]) => sum + count, 0);
  if (ticks > duration || counted !== samples) throw odd('durations that differ');
  return { steps, ticks };
}

/** ISO/IEC 14496-12 sections 8.6.1.2 and 8.6.1.3: pairs of a count and a value. */
function rows(box: Box): Rows {
  const fields = new Fields(box);
  const version = fields.unsigned32() >>> 24;
  const count = fields.unsigned32();
  if (version !== 0 || count * 8 !== box.payload.length - 8) throw odd(`a box ${box.type} of another form`);
  return Array.from({ length: count }, () => [fields.unsigned32(), fields.unsigned32()] as const);
}

/** Whether no picture is shown before the first. */
function beginsFirst(shifts: Rows, steps: Rows): boolean {
  const some = (each: Rows): number[] =>
    each
      .slice(0, REORDERED)
      .flatMap(([count, value]) => Array<number>(Math.min(count, REORDERED)).fill(value));
  const [shift, step] = [some(shifts).slice(0, REORDERED), some(steps)];
  let at = 0;
  return shift.every((value, nth) => {
    const shown = at + value;
    at += step[nth] ?? 0;
    return shown >= (shift[0] ?? 0);
  });
}

/** The only edit (section 8.6.6). */
function editOf(edts: Box): { start: number; duration: number } {
  const fields = new Fields(requiredBox(childrenOf(edts.payload), 'elst'));
  const version = fields.unsigned32() >>> 24;
  const count = fields.unsigned32();
  const [duration, start, rate] = [fields.unsigned32(), fields.signed32(), fields.unsigned32()];
  if (version !== 0 || count !== 1 || start < 0 || rate !== 0x1_0000) throw odd('edits');
  return { start, duration };
}

/** Three letters of five bits. */
function languageOf(code: number): string {
  const letters = [10, 5, 0].map((shift) => String.fromCharCode(0x60 + ((code >> shift) & 31))).join('');
  if (!/^[a-z]{3}$/.test(letters)) throw odd('a language of Macintosh');
  return letters;
}

// AAC (ISO/IEC 14496-3 section 1.6.2.1, 14496-1 section 7.2.6).

const RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000];
/** Below it, SBR may be in the packets alone. */
const LEAST_RATE = 32_000;
const LAYOUTS = ['', 'mono', 'stereo'];

interface Sound {
  readonly codec_name: 'aac';
  readonly codec_tag_string: 'mp4a';
  readonly codec_tag: string;
  readonly profile: 'LC';
  readonly sample_fmt: 'fltp';
  readonly sample_rate: number;
  readonly channels: number;
  readonly channel_layout: string;
}

/** Before the boxes of a sample entry of version 0. */
const ENTRY_BYTES = 28;

function aacOf(entry: Uint8Array): Sound {
  // `btrt` says nothing that the samples do not.
  const boxes = known(childrenOf(entry.subarray(ENTRY_BYTES)), new Set(['esds', 'btrt']));
  const config = configOf(requiredBox(boxes, 'esds').payload.subarray(4));
  const [first = 0, second = 0] = config;
  const channels = (second >> 3) & 15;
  const sample_rate = RATES[((first & 7) << 1) | (second >> 7)] ?? 0;
  const channel_layout = LAYOUTS[channels] ?? '';
  const isPlain =
    first >> 3 === 2 && (second & 7) === 0 && sample_rate >= LEAST_RATE && channel_layout !== '';
  if (!isPlain || entry[9] !== 0 || entry[8] !== 0 || !hasNoExtension(config))
    throw odd('AAC of another kind');
  return {
    codec_name: 'aac',
    codec_tag_string: 'mp4a',
    codec_tag: '0x6134706d',
    profile: 'LC',
    sample_fmt: 'fltp',
    ...{ sample_rate, channels, channel_layout },
  };
}

/** Two bytes; ffmpeg's encoder adds that there is no SBR: 0x2b7, object type 5, 0. */
function hasNoExtension(config: Uint8Array): boolean {
  const rest = Buffer.from(config.subarray(2)).toString('hex');
  return rest === '' || rest === '56e500';
}

/** The descriptors in one another: ES (3), decoder configuration (4), its specific part (5). */
function configOf(bytes: Uint8Array): Uint8Array {
  const stream = descriptor(bytes, 3);
  // Number of the stream, and flags of the fields behind it.
  if (stream[2] !== 0 || stream[0] === undefined) throw odd('a stream that depends on others');
  const decoder = descriptor(stream.subarray(3), 4);
  if (decoder[0] !== 0x40) throw odd('no AAC of MPEG-4');
  return descriptor(decoder.subarray(13), 5);
}

function descriptor(bytes: Uint8Array, tag: number): Uint8Array {
  if (bytes[0] !== tag) throw odd(`no descriptor ${tag}`);
  let length = 0;
  for (let at = 1; at <= 4; at += 1) {
    const byte = bytes[at] ?? 0;
    length = length * 128 + (byte & 127);
    if (byte < 128) {
      if (at + 1 + length > bytes.length) throw odd('a descriptor that breaks off');
      return bytes.subarray(at + 1, at + 1 + length);
    }
  }
  throw odd('a descriptor too long');
}

const MAX_FRAME_BYTES = 1024;
const FILL = 6;

/**
 * Whether the first element of a frame has the channels of the header (section 4.4.2.1): some
 * encoders write others, which decoders then go by. In front may stand the encoder's name.
 */
function beginsAsSaid(frame: Uint8Array, channels: number): boolean {
  let at = 0;
  const take = (count: number): number => {
    let value = 0;
    for (let bit = 0; bit < count; bit += 1, at += 1) {
      value = value * 2 + (((frame[at >> 3] ?? 0) >> (7 - (at & 7))) & 1);
    }
    return value;
  };
  let element = take(3);
  for (let fills = 0; element === FILL && fills < 4; fills += 1) {
    const short = take(4);
    const bytes = short === 15 ? 14 + take(8) : short;
    const begin = at;
    // Of type 13 and 14 it is SBR.
    if (bytes > 0 && take(4) >= 13) return false;
    at = begin + bytes * 8;
    element = take(3);
  }
  return at <= frame.length * 8 && element === channels - 1;
}

// Tags, under ffmpeg's names.

const MAX_BRAND_BYTES = 256;

function brandTags(ftyp: Buffer): Tags {
  const major = latin1(ftyp, 0);
  if (!BRANDS.test(major) || ftyp.length < 8) throw odd(`the brand ${major}`);
  const compatible = ftyp.toString('latin1', 8);
  if (!/^[\x20-\x7e]*$/.test(compatible)) throw odd('odd brands');
  return {
    major_brand: major,
    minor_version: String(ftyp.readUInt32BE(4)),
    compatible_brands: compatible,
  };
}

const SECONDS_TO_1970 = 2_082_844_800;

function createdTag(created: number): Tags {
  if (created === 0) return {};
  if (created < SECONDS_TO_1970) throw odd('a time before 1970');
  const time = new Date((created - SECONDS_TO_1970) * 1000).toISOString();
  return { creation_time: time.replace('.000Z', '.000000Z') };
}

/** Behind the handler's type and reserved fields: text that ends with NUL. */
function handlerTag(hdlr: Uint8Array): Tags {
  const text = Buffer.from(hdlr.subarray(24)).toString('latin1');
  const name = /^([\x20-\x7e]*)\0$/.exec(text)?.[1];
  if (name === undefined) throw odd('a name of another form');
  return name === '' ? {} : { handler_name: name };
}

function vendorOf(entry: Uint8Array): string {
  const vendor = latin1(entry, 12);
  if (vendor !== '\0\0\0\0') throw odd('a vendor');
  return '[0][0][0][0]';
}

/** Of iTunes' items: plain text. */
const ITEMS: Readonly<Record<string, string>> = {
  '\xa9nam': 'title',
  '\xa9ART': 'artist',
  '\xa9alb': 'album',
  '\xa9cmt': 'comment',
  '\xa9day': 'date',
  '\xa9gen': 'genre',
  '\xa9too': 'encoder',
  '\xa9wrt': 'composer',
};

function textTags(udta: Box): Tags {
  const meta = requiredBox(known(childrenOf(udta.payload), new Set(['meta'])), 'meta');
  const boxes = known(childrenOf(meta.payload.subarray(4)), new Set(['hdlr', 'ilst', 'free']));
  if (latin1(requiredBox(boxes, 'hdlr').payload, 8) !== 'mdir') throw odd('tags of another kind');
  const items = childrenOf(onlyBox(boxes, 'ilst')?.payload ?? new Uint8Array());
  return Object.fromEntries(
    items.map((item) => {
      const name = ITEMS[item.type];
      const [data, ...others] = childrenOf(item.payload);
      if (name === undefined || data?.type !== 'data' || others.length > 0) throw odd(`a tag ${item.type}`);
      const fields = new Fields(data);
      // UTF-8, of no country.
      if (fields.unsigned32() !== 1 || fields.unsigned32() !== 0) throw odd(`a tag ${item.type}`);
      const bytes = data.payload.subarray(8);
      const isOdd = bytes.length === 0 || bytes.length > MAX_TEXT_BYTES || bytes.includes(0);
      if (isOdd || !isUtf8(bytes)) throw odd('an odd text');
      return [name, Buffer.from(bytes).toString()];
    }),
  );
}

/** ffmpeg keeps less of a longer one. */
const MAX_TEXT_BYTES = 1000;
