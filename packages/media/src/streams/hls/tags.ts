/** The lines of a playlist (RFC 8216 section 4.1), and the attributes of a tag (section 4.2). */
import { resolved, unsupported, unusable } from '../presentation.ts';

export type Line =
  | { readonly uri: string }
  /** `value` is the text after the colon. */
  | { readonly tag: string; readonly value: string };

/** Six for each of the segments that may be there, and as many for everything else. */
const MAX_LINES = 125_000;

/**
 * Omits blank lines and comments. One after another: all at once take ten times the text's room.
 * @throws {MediaFailure} if it is not HLS, or uses variables
 */
export function* linesOf(text: string): Generator<Line> {
  let count = 0;
  // A byte order mark counts as whitespace.
  for (const [whole] of text.trimStart().matchAll(/[^\r\n]+/g)) {
    const line = whole.trim();
    if (count === 0 && !line.startsWith('#EXTM3U')) break;
    if (++count > MAX_LINES) throw unusable(`the playlist has more than ${MAX_LINES} lines`);
    if (line.startsWith('#EXT')) yield tagOf(line);
    else if (line !== '' && !line.startsWith('#')) yield { uri: line };
  }
  if (count === 0) throw unusable('the playlist does not begin with #EXTM3U');
}

function tagOf(line: string): Line {
  const colon = line.indexOf(':');
  const tag = colon < 0 ? line.slice(1) : line.slice(1, colon);
  if (tag === 'EXT-X-DEFINE') throw unsupported('playlists with variables (EXT-X-DEFINE) cannot be read');
  return { tag, value: colon < 0 ? '' : line.slice(colon + 1) };
}

/** The names of its tags that say what a playlist is. @throws as {@link linesOf} */
export function tagsOf(text: string): ReadonlySet<string> {
  const known = new Set(['EXT-X-STREAM-INF', 'EXT-X-TARGETDURATION', 'EXT-X-ENDLIST']);
  const found = new Set<string>();
  for (const line of linesOf(text)) if ('tag' in line && known.has(line.tag)) found.add(line.tag);
  return found;
}

type Attributes = ReadonlyMap<string, string>;

/** Adjacent parts share no characters, so that a value of a million spaces is read once. */
const ATTRIBUTE = /\s*([A-Z0-9-]+)=(?:"([^"]*)"\s*|([^",]*))(?:,|$)/y;

/** `A=1,B="x,y"`, without the quotes. From the first unreadable part on, all is left out. */
export function attributesOf(value: string): Attributes {
  const attributes = new Map<string, string>();
  ATTRIBUTE.lastIndex = 0;
  // Each match begins where the last one ended, so the time is linear in the text's length.
  for (let match = ATTRIBUTE.exec(value); match !== null; match = ATTRIBUTE.exec(value)) {
    const [, name = '', quoted, bare = ''] = match;
    attributes.set(name, quoted ?? bare.trim());
  }
  return attributes;
}

/** @throws {MediaFailure} when the tag has no such address */
export function addressOf(attributes: Attributes, tag: string, base: string): string {
  const uri = attributes.get('URI');
  if (uri === undefined || uri === '') throw unusable(`${tag} has no URI`);
  return resolved(uri, base);
}

/**
 * `<bytes>[@<offset>]` (section 4.3.2.2).
 * @param followsAt where the part before it ended, of the same file; undefined when there was none
 * @throws {MediaFailure} when it is invalid
 */
export function byteRange(value: string, followsAt: number | undefined): { start: number; end: number } {
  const [, bytes, offset] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value) ?? [];
  const start = offset === undefined ? followsAt : Number(offset);
  if (bytes === undefined || start === undefined || Number(bytes) === 0)
    throw unusable('a byte range of the playlist cannot be read');
  return { start, end: start + Number(bytes) };
}
