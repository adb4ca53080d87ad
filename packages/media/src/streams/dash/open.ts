/** A DASH manifest: which representation has the wanted audio, in each of its periods. */
import { encrypted } from '../../failure.ts';
import { findTrack } from '../../track-choice.ts';
import { type OpenedStream, requireCount, type Segment, unsupported, unusable } from '../presentation.ts';
import { type Period, parseManifest, type Representation } from './manifest.ts';
import { segmentsOf } from './segments.ts';

/**
 * Of an audio set the representation with the highest bitrate, since audio costs little; without
 * such a set the lowest of all, since its pictures are fetched too.
 * @throws {MediaFailure} when there is nothing in it that can be fetched
 */
export function openManifest(text: string, url: string, asked: number | string | undefined): OpenedStream {
  const periods = parseManifest(text, url);
  const segments: Segment[] = [];
  let isTrack = true;
  for (const period of periods) {
    const chosen = choose(period, asked);
    isTrack &&= chosen.isTrack;
    const { protection } = chosen.representation;
    if (protection !== null) throw encrypted(`the stream needs a key (${protection})`);
    const found = segmentsOf(period, chosen.representation);
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
    } else segments.push(...found);
    requireCount(segments.length);
  }
  if (segments.length === 0) throw unusable('the manifest has no segments');
  return { content: { segments }, isTrack };
}

/**
 * Whether both tracks are the same representation in all periods.
 * @throws {MediaFailure} when there is no such track
 */
export function isSameSound(
  text: string,
  url: string,
  asked: number | string | undefined,
  other: number | string | undefined,
): boolean {
  return parseManifest(text, url).every(
    (period) => choose(period, asked).representation === choose(period, other).representation,
  );
}

function choose(
  { sets }: Period,
  asked: number | string | undefined,
): { representation: Representation; isTrack: boolean } {
  const audio = sets.filter(({ kind, representations }) => kind === 'audio' && representations.length > 0);
  if (audio.length === 0) {
    const all = sets.filter(({ kind }) => kind === 'video').flatMap(({ representations }) => representations);
    const [lowest] = all.toSorted((a, b) => a.bandwidth - b.bandwidth);
    if (lowest === undefined) throw unsupported('no audio stream');
    return { representation: lowest, isTrack: false };
  }
  const readable = audio.filter(({ representations }) => representations.some(isReadable));
  // As among the tracks of a file: an encrypted one only where it was asked for.
  const set = findTrack(asked === undefined && readable.length > 0 ? readable : audio, asked);
  const best = set?.representations.toSorted(
    (a, b) => Number(isReadable(b)) - Number(isReadable(a)) || b.bandwidth - a.bandwidth,
  )[0];
  if (best === undefined) {
    const known = audio.slice(0, SHOWN).map(({ language }, nth) => `${nth}: ${shown(language)}`);
    throw unsupported(`no audio track ${asked}; the stream has ${known.join('; ')}`);
  }
  return { representation: best, isTrack: true };
}

function isReadable({ protection }: Representation): boolean {
  return protection === null;
}

/** Of sets, in an error. */
const SHOWN = 20;

function shown(language: string | null): string {
  return language?.replaceAll(/[\p{Cc}\p{Cf}]/gu, '').slice(0, 60) ?? 'no language';
}
