/** Languages of tracks: containers say `ger` or `deu` (ISO 639-2), callers `de` or `de-AT` (BCP 47). */

/** The primary subtag in its shortest form, `eng` → `en`, `ger` → `de`, `pt-BR` → `pt`; undefined for `und` and nonsense. */
function primaryLanguage(tag: string): string | undefined {
  try {
    // Unicode's canonical form (UTS 35 annex C) maps both three-letter sets to the two-letter code where there is one.
    const language = new Intl.Locale(tag).language;
    return language === 'und' ? undefined : language;
  } catch {
    return undefined;
  }
}

/** How well a track's language answers the one asked for: 2 the same tag, 1 the same language, 0 another. */
export function languageMatch(asked: string, track: string | null): 0 | 1 | 2 {
  if (track === null) return 0;
  if (asked.toLowerCase() === track.toLowerCase()) return 2;
  const language = primaryLanguage(asked);
  return language !== undefined && language === primaryLanguage(track) ? 1 : 0;
}
