/** A master playlist (RFC 8216 section 4.3.4): which playlist has the wanted audio. */
import { findTrack } from '../../track-choice.ts';
import { resolved, unsupported, unusable } from '../presentation.ts';
import { attributesOf, type Line } from './tags.ts';

interface Variant {
  readonly url: string;
  /** Peak bits a second. */
  readonly bandwidth: number;
  /** The group of its audio renditions. */
  readonly audio: string | undefined;
}

interface AudioRendition {
  readonly group: string;
  /** undefined: in the playlists of the variants themselves. */
  readonly url: string | undefined;
  readonly name: string;
  readonly language: string | null;
  readonly isDefault: boolean;
}

interface ChosenPlaylist {
  readonly url: string;
  /** Whether it has only the wanted track; otherwise the file's tracks are to choose from. */
  readonly isTrack: boolean;
  /** A playlist of pictures that play beside it; undefined if they are in the same one. */
  readonly picturesUrl?: string | undefined;
}

/** Of renditions, in an error. */
const SHOWN = 20;

export function isMaster(lines: readonly Line[]): boolean {
  return lines.some((line) => 'tag' in line && line.tag === 'EXT-X-STREAM-INF');
}

/**
 * The highest variant with audio renditions, since audio costs little beside pictures; without such
 * variants the lowest one, since its pictures are fetched too.
 * @param asked an index or a language, as in a request
 * @throws {MediaFailure} EXTRACTION_FAILED, listing the renditions, when there is no such one
 */
export function choosePlaylist(
  lines: readonly Line[],
  base: string,
  asked: number | string | undefined,
): ChosenPlaylist {
  const variants = variantsOf(lines, base).toSorted((a, b) => a.bandwidth - b.bandwidth);
  const renditions = renditionsOf(lines, base);
  const [lowest] = variants;
  if (lowest === undefined) throw unusable('the playlist names no stream');
  const groups = new Set(renditions.map(({ group }) => group));
  const best = variants.findLast(({ audio }) => audio !== undefined && groups.has(audio));
  if (best === undefined) return { url: lowest.url, isTrack: false };
  const group = renditions.filter((rendition) => rendition.group === best.audio);
  const rendition = findTrack(group, asked);
  if (rendition === undefined) {
    const known = group
      .slice(0, SHOWN)
      .map(({ name, language }, nth) => `${nth}: ${language ?? 'no language'}, ${name}`);
    throw unsupported(`no audio track ${asked}; the stream has ${known.join('; ')}`);
  }
  const beside = variants.filter(({ audio, url }) => audio === best.audio && url !== rendition.url);
  if (rendition.url === undefined) return { url: (beside[0] ?? lowest).url, isTrack: true };
  return { url: rendition.url, isTrack: true, picturesUrl: beside[0]?.url };
}

function variantsOf(lines: readonly Line[], base: string): Variant[] {
  return lines.flatMap((line, at): Variant[] => {
    if (!('tag' in line) || line.tag !== 'EXT-X-STREAM-INF') return [];
    const attributes = attributesOf(line.value);
    const next = lines[at + 1];
    if (next === undefined || !('uri' in next)) throw unusable('a variant of the playlist has no address');
    return [
      {
        url: resolved(next.uri, base),
        bandwidth: Number(attributes.get('BANDWIDTH') ?? Number.NaN) || 0,
        audio: attributes.get('AUDIO'),
      },
    ];
  });
}

/** A group's renditions in order; duplicates, as for several languages of a name, remain. */
function renditionsOf(lines: readonly Line[], base: string): AudioRendition[] {
  return lines.flatMap((line): AudioRendition[] => {
    if (!('tag' in line) || line.tag !== 'EXT-X-MEDIA') return [];
    const attributes = attributesOf(line.value);
    return attributes.get('TYPE') === 'AUDIO' ? [renditionOf(attributes, base)] : [];
  });
}

function renditionOf(attributes: ReturnType<typeof attributesOf>, base: string): AudioRendition {
  const uri = attributes.get('URI');
  return {
    group: attributes.get('GROUP-ID') ?? '',
    url: uri === undefined ? undefined : resolved(uri, base),
    name: shown(attributes.get('NAME') ?? 'no name'),
    language: attributes.get('LANGUAGE') ?? null,
    isDefault: attributes.get('DEFAULT') === 'YES',
  };
}

/** Shown to callers. */
function shown(name: string): string {
  return name.replaceAll(/[\p{Cc}\p{Cf}]/gu, '').slice(0, 60);
}
