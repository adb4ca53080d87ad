/** A DASH manifest: which representation has the wanted audio, in each of its periods. */
import { encrypted } from '../../failure.ts';
import { findTrack } from '../../track-language.ts';
import {
  DESCRIBED_TRACKS,
  type OpenedStream,
  requireCount,
  requireShort,
  type Segment,
  unsupported,
  unusable,
} from '../presentation.ts';
import { type Period, parseManifest, type Representation } from './manifest.ts';
import { segmentsOf } from './segments.ts';

/**
 * Of an audio set the representation with the highest bitrate, since audio costs little; without
 * such a set the lowest of all, since its pictures are fetched too.
 * @param text of the manifest, read once for any number of tracks; @param url its address
 * @returns chooses a representation for each period, and finds their segments. Both throw
 * {MediaFailure} when there is no such track, or nothing that can be fetched
 */
export function readManifest(text: string, url: string) {
  const periods = parseManifest(text, url).map((period) => ({ period, offered: offeredOf(period) }));
  return (asked: number | string | undefined) => {
    const chosen = periods.map(({ period, offered }) => ({ period, ...choose(offered, asked) }));
    return {
      parts: chosen.map(({ representation }) => representation),
      open: () => openChosen(chosen),
    };
  };
}

interface Chosen {
  readonly representation: Representation;
  readonly isTrack: boolean;
}

function openChosen(periods: readonly (Chosen & { readonly period: Period })[]): OpenedStream {
  const segments: Segment[] = [];
  const isTrack = periods.every((chosen) => chosen.isTrack);
  for (const { period, representation } of periods) {
    const { protection } = representation;
    if (protection !== null) throw encrypted(`the stream needs a key (${protection})`);
    const found = segmentsOf(period, representation);
    if ('fileUrl' in found) {
      const { fileUrl, offsetSeconds } = found;
      const zeroSeconds = period.startSeconds - offsetSeconds;
      // Then the file is the whole presentation. Otherwise the period shows a part of it.
      if (periods.length === 1 && offsetSeconds === 0) return { content: { fileUrl, zeroSeconds }, isTrack };
      const seconds = period.seconds ?? Number.POSITIVE_INFINITY;
      segments.push({
        url: fileUrl,
        seconds: period.seconds ?? 0,
        breaksClock: true,
        mediaZeroSeconds: zeroSeconds,
        shown: { startSeconds: offsetSeconds, endSeconds: offsetSeconds + seconds },
      });
    } else {
      requireCount(segments.length + found.length);
      segments.push(...found);
    }
    requireCount(segments.length);
  }
  if (segments.length === 0) throw unusable('the manifest has no segments');
  return { content: requireShort({ segments }), isTrack };
}

/** What a period offers, found out once however many tracks are asked for. */
interface Offered {
  /** The best representation of each set with sound. */
  readonly audio: readonly {
    readonly best: Representation;
    readonly language: string | null;
    readonly isDefault: boolean;
  }[];
  /** Where there is no such set: the lowest representation with pictures. */
  readonly lowest: Representation | undefined;
}

function offeredOf({ sets }: Period): Offered {
  const audio = sets
    .filter(({ kind, representations }) => kind === 'audio' && representations.length > 0)
    .slice(0, DESCRIBED_TRACKS)
    .flatMap(({ representations, language, isDefault }) => {
      const best = mostOf(representations, isBetter);
      return best === undefined ? [] : [{ best, language, isDefault }];
    });
  const pictures = sets.filter(({ kind }) => kind === 'video').flatMap((set) => set.representations);
  return { audio, lowest: mostOf(pictures, (a, b) => a.bandwidth < b.bandwidth) };
}

function isBetter(a: Representation, b: Representation): boolean {
  return isReadable(a) === isReadable(b) ? a.bandwidth > b.bandwidth : isReadable(a);
}

/** The first of those that no other exceeds. */
function mostOf<Row>(rows: readonly Row[], exceeds: (a: Row, b: Row) => boolean): Row | undefined {
  let most = rows[0];
  for (const row of rows) if (most !== undefined && exceeds(row, most)) most = row;
  return most;
}

function choose({ audio, lowest }: Offered, asked: number | string | undefined): Chosen {
  if (audio.length === 0) {
    if (lowest === undefined) throw unsupported('no audio stream');
    return { representation: lowest, isTrack: false };
  }
  const readable = audio.filter(({ best }) => isReadable(best));
  // As among the tracks of a file: an encrypted one only where it was asked for.
  const set = findTrack(asked === undefined && readable.length > 0 ? readable : audio, asked);
  if (set === undefined) {
    const known = audio.slice(0, SHOWN).map(({ language }, nth) => `${nth}: ${shown(language)}`);
    throw unsupported(`no audio track ${asked}; the stream has ${known.join('; ')}`);
  }
  return { representation: set.best, isTrack: true };
}

function isReadable({ protection }: Representation): boolean {
  return protection === null;
}

/** Of sets, in an error. */
const SHOWN = 20;

function shown(language: string | null): string {
  return language?.replaceAll(/[\p{Cc}\p{Cf}]/gu, '').slice(0, 60) ?? 'no language';
}
