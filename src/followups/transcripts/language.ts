/** Languages as transcribers name them and as we do (pure): they answer `en`, `english` or `English`, and are asked by ISO 639-1. */

/** Names that OpenAI's Whisper has for languages which Unicode's data calls otherwise (whisper/tokenizer.py, LANGUAGES and TO_LANGUAGE_CODE). */
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

/** Codes of three letters that Whisper answers by name. */
const LONGER_CODES = ['haw', 'yue'] as const;

let codes: Map<string, string> | undefined;

function codeOfName(name: string): string | undefined {
  if (codes === undefined) {
    const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
    const letters = [...'abcdefghijklmnopqrstuvwxyz'];
    codes = new Map();
    for (const code of [...letters.flatMap((one) => letters.map((other) => one + other)), ...LONGER_CODES]) {
      const known = names.of(code)?.toLowerCase();
      // Of several codes with one name the first is the current one, as `he` is of Hebrew and `iw` was.
      if (known !== undefined && !codes.has(known)) codes.set(known, code);
    }
    for (const [known, code] of Object.entries(WHISPER_NAMES)) codes.set(known, code);
  }
  return codes.get(name);
}

/** The language that a transcriber names, as BCP 47; null where nobody can tell. */
export function languageOf(named: string | undefined): string | null {
  const name = named?.trim().toLowerCase() ?? '';
  if (/^[a-z]{2,3}(-[a-z0-9]{1,8})*$/.test(name)) return canonical(name);
  return codeOfName(name) ?? null;
}

/** ISO 639-1 of a language, by which transcribers are asked: `en` of `eng` and of `en-GB`. */
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
