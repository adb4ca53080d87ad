/** An MPD (ISO/IEC 23009-1): periods, sets and representations, with what each inherits. */
import { protectionName, unsupported, unusable } from '../presentation.ts';
import { childrenNamed, type Element, parseXml } from './xml.ts';

export interface Period {
  /** On the presentation's clock. */
  readonly startSeconds: number;
  /** null: to the end, which is unknown. */
  readonly seconds: number | null;
  readonly sets: readonly AdaptationSet[];
}

interface AdaptationSet {
  readonly kind: 'audio' | 'video' | 'other';
  readonly language: string | null;
  /** Whether its role is `main`. */
  readonly isDefault: boolean;
  readonly representations: readonly Representation[];
}

export interface Representation {
  readonly id: string;
  /** Bits a second. */
  readonly bandwidth: number;
  /** Base addresses, each relative to the one before it; the first is the manifest's own. */
  readonly bases: readonly string[];
  /** What encrypts it, such as `Widevine`; null where nothing does. */
  readonly protection: string | null;
  /** SegmentTemplate, SegmentList and SegmentBase from the outermost to its own: later ones win. */
  readonly addressing: readonly Element[];
}

/** @throws {MediaFailure} EXTRACTION_FAILED `live stream`; INVALID_VIDEO when it cannot be read */
export function parseManifest(text: string, url: string): Period[] {
  const mpd = parseXml(text);
  if (mpd.name !== 'MPD') throw unusable('the manifest is not an MPD');
  if (mpd.attributes.get('type') === 'dynamic') throw unsupported('live stream');
  const total = secondsOf(mpd.attributes.get('mediaPresentationDuration'));
  const elements = childrenNamed(mpd, 'Period');
  const bases = basesOf([url], mpd);
  let follows = 0;
  return elements.map((element, nth) => {
    if ([...element.attributes.keys()].some((name) => name.endsWith(':href')))
      throw unsupported('manifests of several files cannot be read');
    const startSeconds = secondsOf(element.attributes.get('start')) ?? follows;
    const next = elements[nth + 1];
    const end = next === undefined ? total : secondsOf(next.attributes.get('start'));
    const seconds =
      secondsOf(element.attributes.get('duration')) ??
      (end === null ? null : Math.max(0, end - startSeconds));
    follows = startSeconds + (seconds ?? 0);
    const outer = { bases: basesOf(bases, element), addressing: addressingOf(element) };
    const sets = childrenNamed(element, 'AdaptationSet').map((set) => readSet(set, outer));
    return { startSeconds, seconds, sets };
  });
}

/** Kept once for all representations that inherit it; each has only its own few. */
type Outer = Pick<Representation, 'bases' | 'addressing'>;

/** The first of several addresses for the same. */
function basesOf(outer: readonly string[], element: Element): readonly string[] {
  const text = element.children.find(({ name }) => name === 'BaseURL')?.text.trim() ?? '';
  return text === '' ? outer : [...outer, text];
}

const ADDRESSING = new Set(['SegmentTemplate', 'SegmentList', 'SegmentBase']);

/** At most one is present. */
function addressingOf({ children }: Element): Element[] {
  const own = children.find(({ name }) => ADDRESSING.has(name));
  return own === undefined ? [] : [own];
}

function readSet(set: Element, outer: Outer): AdaptationSet {
  const bases = basesOf(outer.bases, set);
  const addressing = [...outer.addressing, ...addressingOf(set)];
  const elements = childrenNamed(set, 'Representation');
  const ofSet = protectionOf(set);
  const representations = elements.map((element): Representation => {
    const { attributes } = element;
    return {
      bases: basesOf(bases, element),
      id: attributes.get('id') ?? '',
      bandwidth: Number(attributes.get('bandwidth')) || 0,
      protection: ofSet ?? protectionOf(element),
      addressing: [...addressing, ...addressingOf(element)],
    };
  });
  const roles = childrenNamed(set, 'Role').map(({ attributes }) => attributes.get('value'));
  return {
    kind: kindOf(set, elements),
    language: set.attributes.get('lang') ?? null,
    isDefault: roles.includes('main'),
    representations,
  };
}

/** Of several systems that have the same key, the first that has a name. */
function protectionOf(element: Element): string | null {
  const schemes = childrenNamed(element, 'ContentProtection').map(
    ({ attributes }) => attributes.get('schemeIdUri') ?? '',
  );
  return schemes.length === 0 ? null : protectionName(schemes, 'Common Encryption');
}

function kindOf(set: Element, representations: readonly Element[]): AdaptationSet['kind'] {
  const said = [set, ...childrenNamed(set, 'ContentComponent'), ...representations].flatMap(
    ({ attributes }) =>
      ['contentType', 'mimeType'].flatMap((name) => attributes.get(name)?.toLowerCase() ?? []),
  );
  // A set with pictures may contain audio as well.
  const is = (kind: string): boolean => said.some((type) => type === kind || type.startsWith(`${kind}/`));
  return is('video') ? 'video' : is('audio') ? 'audio' : 'other';
}

// Numbers as a manifest writes them.

/** XML Schema's duration without years and months, `P1DT2H3M4.5S`. @returns null if it is none */
function secondsOf(duration: string | undefined): number | null {
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] =
    /^P(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,12})?)S)?)?$/.exec(
      duration?.trim() ?? '',
    ) ?? ['', Number.NaN];
  const sum = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
  return Number.isNaN(sum) ? null : sum;
}

/** A whole number, 0 or more. @throws {MediaFailure} when it is anything else */
export function wholeNumber(value: string | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (!/^\d{1,15}$/.test(value)) throw unusable('a number of the manifest cannot be read');
  return Number(value);
}

/** Up to 2^64 (`xs:unsignedLong`), which no double holds, for addresses. @throws {MediaFailure} */
export function wholeTicks(value: string | undefined, otherwise: bigint): bigint {
  if (value === undefined) return otherwise;
  if (!/^\d{1,20}$/.test(value)) throw unusable('a number of the manifest cannot be read');
  return BigInt(value);
}

/** `100-199`, both inclusive; undefined if absent. @throws {MediaFailure} for anything else */
export function byteSpan(value: string | undefined): { start: number; end: number } | undefined {
  if (value === undefined) return undefined;
  const [, start, last] = /^(\d{1,15})-(\d{1,15})$/.exec(value) ?? [];
  if (start === undefined || Number(last) < Number(start))
    throw unusable('a byte range of the manifest cannot be read');
  return { start: Number(start), end: Number(last) + 1 };
}
