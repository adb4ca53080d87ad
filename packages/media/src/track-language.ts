/** Tracks by their language, of a file and of a stream (decisions A2, `output.track`). */

/** All tracks at once, as `output.track` names them (decisions A2). */
export const MIX = 'mix';

/**
 * Among anything with a language: tracks of a file, renditions of a stream. Of these one is
 * fetched, and a mix is of what it holds.
 */
export function findTrack<Track extends { readonly language: string | null; readonly isDefault: boolean }>(
  tracks: readonly Track[],
  wanted: number | string | undefined,
): Track | undefined {
  const asked = wanted === MIX ? undefined : wanted;
  if (typeof asked === 'number') return tracks[asked];
  const matching = (least: 1 | 2) =>
    tracks.filter(({ language }) => asked === undefined || languageMatch(asked, language) >= least);
  const exact = matching(2);
  const best = exact.length > 0 ? exact : matching(1);
  return best.find(({ isDefault }) => isDefault) ?? best[0];
}

/** `ger` → `de` (ISO 639-2), `pt-BR` → `pt` (BCP 47); undefined for nonsense, `und`. */
function primaryLanguage(tag: string): string | undefined {
  try {
    // Canonical form (UTS 35 annex C) maps both three-letter sets to two letters where possible.
    const language = new Intl.Locale(tag).language;
    return language === 'und' ? undefined : language;
  } catch {
    return undefined;
  }
}

/** How a track's language fits the requested one: 2 same tag, 1 same language, 0 another. */
function languageMatch(asked: string, track: string | null): 0 | 1 | 2 {
  if (track === null) return 0;
  if (asked.toLowerCase() === track.toLowerCase()) return 2;
  const language = primaryLanguage(asked);
  return language !== undefined && language === primaryLanguage(track) ? 1 : 0;
}
