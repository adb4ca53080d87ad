/** Segments by SegmentTemplate, SegmentList or SegmentBase (ISO/IEC 23009-1 section 5.3.9). */
import { type Piece, requireCount, resolved, type Segment, unsupported, unusable } from '../presentation.ts';
import { byteSpan, type Period, type Representation, wholeNumber, wholeTicks } from './manifest.ts';
import { childrenNamed, type Element } from './xml.ts';

/** When a segment plays, in ticks. */
interface Place {
  readonly number: number;
  readonly start: bigint;
  readonly ticks: number;
}

interface SingleFile {
  readonly fileUrl: string;
  /** Its timestamp at the period's start. */
  readonly offsetSeconds: number;
}

/** @throws {MediaFailure} when they cannot be determined */
export function segmentsOf(period: Period, representation: Representation): Segment[] | SingleFile {
  const { addressing, bases } = representation;
  const baseUrl = bases.reduce((base, address) => resolved(address, base));
  const kind = addressing.at(-1)?.name ?? 'SegmentBase';
  const elements = addressing.filter(({ name }) => name === kind);
  const said = (name: string): string | undefined =>
    elements.findLast(({ attributes }) => attributes.has(name))?.attributes.get(name);
  const child = (name: string): Element | undefined =>
    elements
      .findLast((element) => childrenNamed(element, name).length > 0)
      ?.children.find((one) => one.name === name);
  const timescale = wholeNumber(said('timescale'), 1);
  if (timescale === 0) throw unusable('the manifest has a timescale of 0');
  const offset = wholeTicks(said('presentationTimeOffset'), 0n);
  if (kind === 'SegmentBase') {
    if (bases.length === 1) throw unusable('the manifest does not say where its audio is');
    return { fileUrl: baseUrl, offsetSeconds: Number(offset) / timescale };
  }
  const timing: Timing = {
    timescale,
    duration: wholeNumber(said('duration'), 0),
    startNumber: wholeNumber(said('startNumber'), 1),
    endNumber: wholeNumber(said('endNumber'), Number.POSITIVE_INFINITY),
    offset,
    timeline: child('SegmentTimeline'),
  };
  const own = kind === 'SegmentTemplate' ? templated : listed;
  const mediaZeroSeconds = period.startSeconds - Number(offset) / timescale;
  return own({ period, representation, baseUrl, timing, said, child, elements }).map((segment, nth) => ({
    ...segment,
    breaksClock: nth === 0,
    mediaZeroSeconds,
  }));
}

interface Timing {
  readonly timescale: number;
  /** Ticks of each segment; 0 if a timeline has them. */
  readonly duration: number;
  readonly startNumber: number;
  readonly endNumber: number;
  /** The media's ticks at the period's start. */
  readonly offset: bigint;
  readonly timeline: Element | undefined;
}

interface Addressing {
  readonly period: Period;
  readonly representation: Representation;
  /** Addresses are relative to it. */
  readonly baseUrl: string;
  readonly timing: Timing;
  /** An attribute, its own or inherited. */
  readonly said: (name: string) => string | undefined;
  readonly child: (name: string) => Element | undefined;
  readonly elements: readonly Element[];
}

type BareSegment = Omit<Segment, 'breaksClock'>;

function templated({ period, representation, baseUrl, timing, said, child }: Addressing): BareSegment[] {
  const media = said('media');
  if (media === undefined) throw unusable('a template of the manifest has no address');
  const { id, bandwidth } = representation;
  const initialization = said('initialization');
  const init =
    initialization === undefined
      ? initOf(child, baseUrl)
      : { url: resolved(templateOf(initialization, id, bandwidth)({}), baseUrl), span: undefined };
  const fill = templateOf(media, id, bandwidth);
  return placesOf(period, timing, null).map((place) => ({
    url: resolved(fill({ Number: place.number, Time: place.start }), baseUrl),
    init,
    seconds: place.ticks / timing.timescale,
  }));
}

function listed({ period, baseUrl, timing, child, elements }: Addressing): BareSegment[] {
  const list = elements.findLast((element) => childrenNamed(element, 'SegmentURL').length > 0);
  const urls = list === undefined ? [] : childrenNamed(list, 'SegmentURL');
  requireCount(urls.length);
  const places = placesOf(period, timing, urls.length);
  const init = initOf(child, baseUrl);
  return urls.map(({ attributes }, nth) => ({
    url: resolved(attributes.get('media') ?? '', baseUrl),
    span: byteSpan(attributes.get('mediaRange')),
    init,
    seconds: (places[nth]?.ticks ?? 0) / timing.timescale,
  }));
}

function initOf(child: Addressing['child'], baseUrl: string): Piece | undefined {
  const attributes = child('Initialization')?.attributes;
  return (
    attributes && {
      url: resolved(attributes.get('sourceURL') ?? '', baseUrl),
      span: byteSpan(attributes.get('range')),
    }
  );
}

/** @param count of the segments, if known */
function placesOf({ seconds }: Period, timing: Timing, count: number | null): Place[] {
  const { timescale, duration, startNumber, endNumber, offset, timeline } = timing;
  const endTicks = seconds === null ? null : Number(offset) + seconds * timescale;
  if (timeline !== undefined) return timelinePlaces(timeline, startNumber, endTicks);
  const whole =
    seconds === null ? null : duration > 0 ? Math.ceil(seconds * (timescale / duration) - 1e-6) : 1;
  const most = Number.isFinite(endNumber) ? endNumber - startNumber + 1 : null;
  const length = count ?? most ?? whole;
  if (length === null) throw unusable('the manifest does not say how long the stream is');
  requireCount(length);
  return Array.from({ length: Math.max(0, length) }, (_, nth) => {
    const start = offset + BigInt(nth * duration);
    const left = endTicks === null || duration === 0 ? duration : Math.max(0, endTicks - Number(start));
    return { number: startNumber + nth, start, ticks: Math.min(duration, left) };
  });
}

/** `<S t d r>` (section 5.3.9.6): `r` more of the same length, -1: up to the next or the end. */
function timelinePlaces(timeline: Element, startNumber: number, endTicks: number | null): Place[] {
  const places: Place[] = [];
  const rows = childrenNamed(timeline, 'S');
  let start = 0n;
  for (const [nth, { attributes }] of rows.entries()) {
    start = wholeTicks(attributes.get('t'), start);
    const ticks = wholeNumber(attributes.get('d'), 0);
    if (ticks === 0) throw unusable('a segment of the manifest has no length');
    const next = rows[nth + 1]?.attributes.get('t');
    const until = next === undefined ? endTicks : Number(wholeTicks(next, 0n));
    const repeat = attributes.get('r') ?? '0';
    if (repeat.startsWith('-') && until === null) throw unsupported('live stream');
    const more = repeat.startsWith('-')
      ? Math.max(0, Math.ceil(((until ?? 0) - Number(start)) / ticks - 1e-6) - 1)
      : wholeNumber(repeat, 0);
    requireCount(places.length + more + 1);
    for (let index = 0; index <= more; index += 1) {
      places.push({ number: startNumber + places.length, start, ticks });
      start += BigInt(ticks);
    }
  }
  return places;
}

// Addresses of SegmentTemplate (ISO/IEC 23009-1 section 5.3.9.4.4).

/** Of a template and its address, of which there may be 10,000: the guard accepts 2,048. */
const MAX_CHARACTERS = 4_096;

/** More than the standard has identifiers. */
const MAX_IDENTIFIERS = 16;

/**
 * `$Number%05d$` and the like; `$$` is a `$`. The text is looked through once for all segments.
 * @returns fills in a segment's number and time, in ticks; none in the address of the header. It
 * throws {MediaFailure} for other names, or where the address is too long
 */
function templateOf(
  template: string,
  id: string,
  bandwidth: number,
): (values: { readonly Number?: number; readonly Time?: bigint }) => string {
  const short = (text: string): string => {
    if (text.length > MAX_CHARACTERS) throw unusable('an address of the manifest is too long');
    return text;
  };
  const parts: (string | { readonly name: 'Number' | 'Time'; readonly width: number })[] = [];
  const pieces = short(template).split(/\$([^$]*)\$/);
  for (const [nth, piece] of pieces.entries()) {
    if (nth % 2 === 0) {
      parts.push(piece);
      continue;
    }
    const [, name = '', width = '0'] = /^(\w+)(?:%0(\d{1,2})d)?$/.exec(piece) ?? [];
    if (name === 'Number' || name === 'Time') parts.push({ name, width: Number(width) });
    else if (name === 'RepresentationID') parts.push(short(id.padStart(Number(width), '0')));
    else if (name === 'Bandwidth') parts.push(String(bandwidth).padStart(Number(width), '0'));
    else if (piece === '') parts.push('$');
    else throw unreadable();
  }
  if (pieces.length > 2 * MAX_IDENTIFIERS + 1) throw unreadable();
  const filled = (values: Parameters<ReturnType<typeof templateOf>>[0]): string =>
    parts
      .map((part) => {
        if (typeof part === 'string') return part;
        const value = values[part.name];
        if (value === undefined) throw unreadable();
        return String(value).padStart(part.width, '0');
      })
      .join('');
  return (values) => short(filled(values));
}

function unreadable(): Error {
  return unusable('a template of the manifest cannot be read');
}
