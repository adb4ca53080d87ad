/** Playlists and manifests that would have a job send thousands of requests to somebody's server. */
import { type Random, seeded } from 'soundpost-testing/random';

export interface RequestStorm {
  readonly name: string;
  /** What lies at `/storm`, and beside it. */
  readonly texts: ReadonlyMap<string, string>;
  /** Addresses of its segments, as it names them, with how often. */
  readonly segments: ReadonlyMap<string, number>;
  /** The limit that a job over it exceeds; otherwise it ends in another way, or completes. */
  readonly beyond?: 'requests' | 'redirects';
}

/**
 * What the server of a storm has: `/s/<n>.ts`, `/s/<n>.m4s` and `/s/<n>.aes` (a transport stream under
 * {@link STORM_KEY}) are segments, `/s/all.ts` many in one file, `/m/<n>` headers, `/k/<n>` keys.
 * `/r/<hops>/<path>` leads there by as many redirects, `/e/<path>` answers 503.
 */
interface Kind {
  readonly segment: (nth: number, random: Random) => string;
  /** Lines before each segment. */
  readonly before?: (nth: number, random: Random) => string[];
  readonly beyond?: RequestStorm['beyond'];
  readonly isDash?: true;
  readonly isNested?: true;
}

export const STORM_KEY = Buffer.from('sixteen bytes...');
const IV = `0x${'0'.repeat(32)}`;

const redirected = (path: string, random: Random, least = 1): string =>
  `/r/${least + random.below(6 - least)}${path}`;
const map = (address: string, rest = ''): string => `#EXT-X-MAP:URI="${address}"${rest}`;
const key = (address: string): string => `#EXT-X-KEY:METHOD=AES-128,URI="${address}",IV=${IV}`;
const m4s = (nth: number): string => `/s/${nth}.m4s`;
const ts = (nth: number): string => `/s/${nth}.ts`;
const aes = (nth: number): string => `/s/${nth}.aes`;

const KINDS: Readonly<Record<string, (sizes: { readonly header: number; readonly ts: number }) => Kind>> = {
  maps: () => ({ segment: m4s, before: (nth) => [map(`/m/${nth}`)], beyond: 'requests' }),
  'redirected segments': () => ({
    segment: (nth, random) => redirected(ts(nth), random),
    beyond: 'redirects',
  }),
  'maps of a transport stream': () => ({ segment: ts, before: (nth) => [map(`/m/${nth}`)] }),
  'redirected maps': () => ({
    segment: m4s,
    before: (nth, random) => [map(redirected(`/m/${nth}`, random, 2))],
    beyond: 'redirects',
  }),
  keys: () => ({ segment: aes, before: (nth) => [key(`/k/${nth}`)], beyond: 'requests' }),
  'redirected keys': () => ({
    segment: aes,
    before: (nth, random) => [key(redirected(`/k/${nth}`, random))],
    beyond: 'redirects',
  }),
  'byte ranges of headers': ({ header }) => ({
    segment: m4s,
    before: (nth) => [map(`/m/${nth}`, `,BYTERANGE="${header}@0"`)],
    beyond: 'requests',
  }),
  'byte ranges of a file': (sizes) => ({
    segment: () => '/s/all.ts',
    before: (nth) => [`#EXT-X-BYTERANGE:${sizes.ts}@${nth * sizes.ts}`],
  }),
  'nested playlists': () => ({
    segment: m4s,
    before: (nth) => [map(`/m/${nth}`)],
    beyond: 'requests',
    isNested: true,
  }),
  periods: () => ({ segment: m4s, beyond: 'requests', isDash: true }),
  'headers that fail': () => ({ segment: m4s, before: (nth) => [map(`/e/m/${nth}`)] }),
  'segments that fail': () => ({ segment: (nth) => `/e${ts(nth)}` }),
};

/** More than any limit, for each segment. */
const BEYOND = 2_001;

/** @param sizes of a header and a transport stream, bytes @param count in turns of all kinds */
export function requestStorms(
  seed: number,
  sizes: { readonly header: number; readonly ts: number },
  count: number,
): RequestStorm[] {
  const kinds = Object.entries(KINDS);
  return Array.from({ length: count }, (_, nth) => {
    const [name = '', kindOf] = kinds[nth % kinds.length] ?? [];
    if (kindOf === undefined) throw new Error('there is no kind');
    return stormOf(`${nth}: ${name}`, kindOf(sizes), seeded(seed + nth));
  });
}

function stormOf(name: string, kind: Kind, random: Random): RequestStorm {
  const length = kind.beyond === undefined ? 50 + random.below(100) : BEYOND + random.below(2_000);
  const segments = new Map<string, number>();
  const addresses = Array.from({ length }, (_, nth) => kind.segment(nth, random));
  for (const address of addresses) segments.set(address, (segments.get(address) ?? 0) + 1);
  const beyond = kind.beyond === undefined ? {} : { beyond: kind.beyond };
  if (kind.isDash) return { name, texts: new Map([['storm', manifest(addresses)]]), segments, ...beyond };
  const media = [
    ...['#EXTM3U', '#EXT-X-TARGETDURATION:1'],
    ...addresses.flatMap((address, nth) => [...(kind.before?.(nth, random) ?? []), '#EXTINF:0.1,', address]),
    '#EXT-X-ENDLIST',
  ].join('\n');
  const texts = kind.isNested ? nested(media, random) : new Map([['storm', media]]);
  return { name, texts, segments, ...beyond };
}

/** A master playlist with sound apart, so that the beginning of the pictures is fetched too. */
function nested(media: string, random: Random): Map<string, string> {
  const renditions = Array.from(
    { length: 1 + random.below(20) },
    (_, nth) => `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${nth}",URI="/sound.m3u8?${nth}"`,
  );
  const master = ['#EXTM3U', ...renditions, '#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"', '/pictures.m3u8'];
  return new Map([
    ['storm', master.join('\n')],
    ['sound.m3u8', media],
    ['pictures.m3u8', media],
  ]);
}

/** Each segment is a period with a header of its own. */
function manifest(addresses: readonly string[]): string {
  const periods = addresses.map(
    (address, nth) =>
      `<Period duration="PT0.1S"><AdaptationSet contentType="audio"><Representation id="1" bandwidth="1"><SegmentList duration="1" timescale="10"><Initialization sourceURL="/m/${nth}"/><SegmentURL media="${address}"/></SegmentList></Representation></AdaptationSet></Period>`,
  );
  return `<MPD type="static" mediaPresentationDuration="PT${addresses.length / 10}S">${periods.join('')}</MPD>`;
}
