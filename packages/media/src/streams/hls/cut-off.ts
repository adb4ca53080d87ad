/** Tells a live stream's playlist, which has no end, from one whose end did not come (pure). */
import { CutOff } from '../presentation.ts';
import { linesOf } from './tags.ts';

/** What a segment's address follows. */
const OF_NEXT = new Set(['EXTINF', 'EXT-X-BYTERANGE']);

/**
 * @param text of a media playlist without EXT-X-ENDLIST
 * @param isOpenEnded whether its server did not say where it ends
 * @throws {CutOff} unless it may be a live stream's, or another list of files
 */
export function requireLive(text: string, isOpenEnded = false): void {
  if (isOpenEnded || isCutOff(text))
    throw new CutOff('the playlist is incomplete: its end (#EXT-X-ENDLIST) is missing');
}

function isCutOff(text: string): boolean {
  let isVod = false;
  let waits = false;
  let last = '';
  let uri: string | undefined;
  let earlier: string | undefined;
  const tags = new Set<string>();
  for (const line of linesOf(text)) {
    if ('uri' in line) {
      earlier = uri;
      uri = line.uri;
      last = uri;
      waits = false;
      continue;
    }
    const { tag, value } = line;
    last = '';
    tags.add(tag);
    isVod ||= tag === 'EXT-X-PLAYLIST-TYPE' && value.trim() === 'VOD';
    waits ||= OF_NEXT.has(tag);
  }
  // A live stream may have no segments yet; a master names its renditions before its variants.
  const isHead = uri === undefined && (tags.has('EXT-X-MEDIA') || !tags.has('EXT-X-TARGETDURATION'));
  if (isVod || waits || isHead) return true;
  if (/[\r\n]\s*$/.test(text.slice(-1_000))) return false;
  // Each line ends with a line feed (RFC 8216 section 4.1), but some servers leave out the last.
  return last === '' || (earlier !== undefined && !isAlike(earlier, last));
}

/** Whether both end alike, or differ in their numbers alone. */
function isAlike(one: string, other: string): boolean {
  const end = (uri: string): string => /\.\w+$/.exec(uri.replace(/[?#].*$/, ''))?.[0] ?? '';
  const shape = (uri: string): string => uri.replaceAll(/\d+/g, '0');
  return shape(one) === shape(other) || (end(one) !== '' && end(one) === end(other));
}
