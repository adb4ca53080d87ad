/** Maps languages (pure): transcribers answer `en`, `english` or `English` and take ISO 639-1. */

/** Whisper's names that differ from Unicode's (tokenizer.py, LANGUAGES and TO_LANGUAGE_CODE). */
const WHISPER_NAMES: Readonly<Record<string, string>> = {
  burmese: 'my',
  castilian: 'es',
  flemish: 'nl',
  haitian: 'ht',
  letzeburgesch: 'lb',
  mandarin: 'zh',
  moldavian: 'ro',
  moldovan: 'ro',
  myanmar: 'my',
  nynorsk: 'nn',
  panjabi: 'pa',
  pushto: 'ps',
  sinhalese: 'si',
  tagalog: 'tl',
  valencian: 'ca',
};

/** Three-letter codes that Whisper answers by name. */
const LONGER_CODES = ['haw', 'yue'] as const;

let codes: Map<string, string> | undefined;

function codeOfName(name: string): string | undefined {
  if (codes === undefined) {
    const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
    const letters = [...'abcdefghijklmnopqrstuvwxyz'];
    codes = new Map();
    for (const code of [...letters.flatMap((one) => letters.map((other) => one + other)), ...LONGER_CODES]) {
      const known = names.of(code)?.toLowerCase();
      // Of several codes for a name the first is current: `he`, not `iw`, for Hebrew.
      if (known !== undefined && !codes.has(known)) codes.set(known, code);
    }
    for (const [known, code] of Object.entries(WHISPER_NAMES)) codes.set(known, code);
  }
  return codes.get(name);
}

/** A transcriber's language as BCP 47; null if unknown. */
export function languageOf(named: string | undefined): string | null {
  const name = named?.trim().toLowerCase() ?? '';
  if (/^[a-z]{2,3}(-[a-z0-9]{1,8})*$/.test(name)) return canonical(name);
  return codeOfName(name) ?? null;
}

/** The ISO 639-1 code to request: `en` for `eng` and `en-GB`. */
export function askedLanguage(language: string): string {
  return canonical(language)?.split('-')[0] ?? language;
}

function canonical(language: string): string | null {
  try {
    return Intl.getCanonicalLocales(language)[0] ?? null;
  } catch {
    return null;
  }
}
