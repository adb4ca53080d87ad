/** An MPD (ISO/IEC 23009-1) as periods, sets and representations, with what each inherits from what it stands in. */
import { resolved, unsupported, unusable } from '../presentation.ts';
import { secondsOf } from './numbers.ts';
import { childrenNamed, type Element, parseXml } from './xml.ts';

export interface Period {
  /** On the presentation's clock. */
  readonly startSeconds: number;
  /** null: to the end, which nothing says. */
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
  /** What addresses are relative to. */
  readonly baseUrl: string;
  readonly isEncrypted: boolean;
  /** SegmentTemplate, SegmentList and SegmentBase from the outermost to its own: later ones say more. */
  readonly addressing: readonly Element[];
  /** The whole of it lies at `baseUrl` where it has no other addressing. */
  readonly hasBaseUrl: boolean;
}

/** @throws {MediaFailure} EXTRACTION_FAILED `live stream`; INVALID_VIDEO when it cannot be read */
export function parseManifest(text: string, url: string): Period[] {
  const mpd = parseXml(text);
  if (mpd.name !== 'MPD') throw unusable('the manifest is no MPD');
  if (mpd.attributes.get('type') === 'dynamic') throw unsupported('live stream');
  const total = secondsOf(mpd.attributes.get('mediaPresentationDuration'));
  const elements = childrenNamed(mpd, 'Period');
  const base = baseOf({ baseUrl: url, hasBaseUrl: false }, mpd);
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
    const outer = { ...baseOf(base, element), addressing: addressingOf(element) };
    const sets = childrenNamed(element, 'AdaptationSet').map((set) => readSet(set, outer));
    return { startSeconds, seconds, sets };
  });
}

interface Base {
  readonly baseUrl: string;
  readonly hasBaseUrl: boolean;
}

interface Outer extends Base {
  readonly addressing: readonly Element[];
}

/** Of several addresses for the same the first. */
function baseOf(outer: Base, element: Element): Base {
  const [own] = childrenNamed(element, 'BaseURL');
  const text = own?.text.trim() ?? '';
  return text === '' ? outer : { baseUrl: resolved(text, outer.baseUrl), hasBaseUrl: true };
}

const ADDRESSING = new Set(['SegmentTemplate', 'SegmentList', 'SegmentBase']);

function addressingOf({ children }: Element): Element[] {
  return children.filter(({ name }) => ADDRESSING.has(name));
}

function readSet(set: Element, outer: Outer): AdaptationSet {
  const base = baseOf(outer, set);
  const addressing = [...outer.addressing, ...addressingOf(set)];
  const elements = childrenNamed(set, 'Representation');
  const isProtected = childrenNamed(set, 'ContentProtection').length > 0;
  const representations = elements.map((element): Representation => {
    const { attributes } = element;
    return {
      ...baseOf(base, element),
      id: attributes.get('id') ?? '',
      bandwidth: Number(attributes.get('bandwidth')) || 0,
      isEncrypted: isProtected || childrenNamed(element, 'ContentProtection').length > 0,
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

function kindOf(set: Element, representations: readonly Element[]): AdaptationSet['kind'] {
  const said = [set, ...childrenNamed(set, 'ContentComponent'), ...representations].flatMap(
    ({ attributes }) =>
      ['contentType', 'mimeType'].flatMap((name) => attributes.get(name)?.toLowerCase() ?? []),
  );
  // A set with pictures may hold sound as well.
  const is = (kind: string): boolean => said.some((type) => type === kind || type.startsWith(`${kind}/`));
  return is('video') ? 'video' : is('audio') ? 'audio' : 'other';
}
