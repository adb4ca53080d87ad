/** A master playlist (RFC 8216 section 4.3.4): which playlist has the wanted audio. */
import type { MediaFailure } from '../../failure.ts';
import { findTrack } from '../../track-language.ts';
import { CutOff, DESCRIBED_TRACKS, resolved, unsupported, unusable } from '../presentation.ts';
import { attributesOf, linesOf } from './tags.ts';

interface Variant {
  /** As written. */
  readonly uri: string;
  /** Peak bits a second. */
  readonly bandwidth: number;
  /** The group of its audio renditions. */
  readonly audio: string | undefined;
}

interface AudioRendition {
  readonly group: string;
  /** As written; undefined: in the playlists of the variants themselves. */
  readonly uri: string | undefined;
  readonly name: string;
  readonly language: string | null;
  readonly isDefault: boolean;
}

export interface ChosenPlaylist {
  readonly url: string;
  /** Whether it has only the wanted track; otherwise the file's tracks are to choose from. */
  readonly isTrack: boolean;
  /** The video's own playlist; undefined if video and audio share one. */
  readonly picturesUrl?: string | undefined;
}

/** Of renditions, in an error. */
const SHOWN = 20;

/**
 * The highest variant with audio renditions, since audio costs little beside pictures; without such
 * variants the lowest one, since its pictures are fetched too.
 * @param text of the playlist, read once for any number of tracks
 * @param base its address
 * @returns chooses by an index or a language, as in a request; it throws {MediaFailure}
 * EXTRACTION_FAILED, listing the renditions, when there is no such one
 * @throws {MediaFailure} when there is nothing to choose from
 */
export function readMaster(
  text: string,
  base: string,
): (asked: number | string | undefined) => ChosenPlaylist {
  const { variants, renditions } = entriesOf(text);
  variants.sort((a, b) => a.bandwidth - b.bandwidth);
  const [lowest] = variants;
  if (lowest === undefined) throw unusable('the playlist names no stream');
  const groups = new Set(renditions.map(({ group }) => group));
  const best = variants.findLast(({ audio }) => audio !== undefined && groups.has(audio));
  if (best === undefined) return () => ({ url: resolved(lowest.uri, base), isTrack: false });
  const group = renditions.filter((rendition) => rendition.group === best.audio).slice(0, DESCRIBED_TRACKS);
  // At most one of them is the rendition itself.
  const beside = new Set<string>();
  for (const { audio, uri } of variants) {
    if (audio === best.audio && beside.size < 2) beside.add(resolved(uri, base));
  }
  return (asked) => {
    const rendition = findTrack(group, asked);
    if (rendition === undefined) throw noSuchTrack(group, asked);
    const { uri } = rendition;
    const url = uri === undefined ? undefined : resolved(uri, base);
    const [picturesUrl] = [...beside].filter((address) => address !== url);
    if (url === undefined) return { url: picturesUrl ?? resolved(lowest.uri, base), isTrack: true };
    return { url, isTrack: true, picturesUrl };
  };
}

function noSuchTrack(group: readonly AudioRendition[], asked: number | string | undefined): MediaFailure {
  const known = group
    .slice(0, SHOWN)
    .map(({ name, language }, nth) => `${nth}: ${language ?? 'no language'}, ${name}`);
  return unsupported(`no audio track ${asked}; the stream has ${known.join('; ')}`);
}

/** A group's renditions in order; duplicates, as for several languages of a name, remain. */
function entriesOf(text: string): { variants: Variant[]; renditions: AudioRendition[] } {
  const variants: Variant[] = [];
  const renditions: AudioRendition[] = [];
  let variant: ReturnType<typeof attributesOf> | undefined;
  const noAddress = (): MediaFailure => unusable('a variant of the playlist has no address');
  for (const line of linesOf(text)) {
    if (variant !== undefined) {
      if (!('uri' in line)) throw noAddress();
      const bandwidth = Number(variant.get('BANDWIDTH') ?? Number.NaN) || 0;
      variants.push({ uri: line.uri, bandwidth, audio: variant.get('AUDIO') });
      variant = undefined;
    } else if ('tag' in line && line.tag === 'EXT-X-STREAM-INF') {
      variant = attributesOf(line.value);
    } else if ('tag' in line && line.tag === 'EXT-X-MEDIA') {
      const attributes = attributesOf(line.value);
      if (attributes.get('TYPE') === 'AUDIO') renditions.push(renditionOf(attributes));
    }
  }
  if (variant !== undefined)
    throw new CutOff('the playlist is incomplete: the address of a variant is missing');
  return { variants, renditions };
}

function renditionOf(attributes: ReturnType<typeof attributesOf>): AudioRendition {
  return {
    group: attributes.get('GROUP-ID') ?? '',
    uri: attributes.get('URI'),
    name: shown(attributes.get('NAME') ?? 'no name'),
    language: attributes.get('LANGUAGE') ?? null,
    isDefault: attributes.get('DEFAULT') === 'YES',
  };
}

/** Shown to callers. */
function shown(name: string): string {
  return name.replaceAll(/[\p{Cc}\p{Cf}]/gu, '').slice(0, 60);
}
