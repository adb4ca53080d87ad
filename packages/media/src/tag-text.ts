/** The text of tags: old programs wrote it in the character set of their country. */

/** Western, Cyrillic, Japanese and Chinese, by TextDecoder's names. */
type Legacy = 'windows-1252' | 'windows-1251' | 'shift_jis' | 'gbk';

/** Of which every byte is a character. */
const WESTERN = 'windows-1252';

/** By the detector's names. */
const LEGACY: Readonly<Record<string, Legacy>> = {
  'windows-1252': WESTERN,
  'iso8859-1': WESTERN,
  'windows-1251': 'windows-1251',
  cp932: 'shift_jis',
  shift_jis: 'shift_jis',
  gbk: 'gbk',
  gb18030: 'gbk',
};

/** Of the letters of Western text, fewer are accented, and hardly ever three in a row. */
const MAX_WESTERN_SHARE = 0.3;
const NOT_WESTERN = /[\x80-\xff]{3}|[\x81-\x90\x9d-\x9f]/;

/** Containers whose text is Unicode by definition. */
const UNICODE = new Set(['asf', 'flac', 'matroska', 'mov', 'ogg']);

/** The text of a tag whose characters are bytes. */
type ReadText = (bytes: string) => string;

/**
 * Bytes that are not UTF-8 are in the character set that is likely for all such tags of the file.
 * So is what a file declares as Latin-1, as far as ffmpeg's text shows it.
 * @param tags of the file; each character is a byte
 * @param demuxer of the container; most may hold ID3, whose Latin-1 is often something else
 */
export async function textReader(
  tags: readonly Readonly<Record<string, string>>[],
  demuxer: string,
): Promise<ReadText> {
  /** The bytes that somebody wrote: ffmpeg has made UTF-8 of those that a file calls Latin-1. */
  const written = (bytes: string): string => {
    const text = unicodeOf(bytes) ?? '';
    const isLatin1 = !UNICODE.has(demuxer) && /\P{ASCII}/u.test(text) && !/[\u{100}-\u{10ffff}]/u.test(text);
    return isLatin1 ? text : bytes;
  };
  const values = tags.flatMap((each) => Object.values(each)).map(written);
  const charset = await charsetOf(values.filter((value) => unicodeOf(value) === undefined));
  return (bytes) => unicodeOf(written(bytes)) ?? decoded(written(bytes), charset);
}

const bytesOf = (latin1: string): Buffer => Buffer.from(latin1, 'latin1');

/** undefined for bytes that are not UTF-8. */
function unicodeOf(bytes: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytesOf(bytes));
  } catch {
    return undefined;
  }
}

/** Without half a character at the end: ID3v1 cuts at 30 bytes. */
function decoded(bytes: string, charset: Legacy): string {
  return new TextDecoder(charset).decode(bytesOf(bytes), { stream: true });
}

async function charsetOf(texts: readonly string[]): Promise<Legacy> {
  const all = texts.join(' ');
  const high = all.match(/[\x80-\xff]/g)?.length ?? 0;
  const letters = high + (all.match(/[a-z]/gi)?.length ?? 0);
  if (high < MAX_WESTERN_SHARE * letters || !NOT_WESTERN.test(all)) return WESTERN;
  // Its models take 7 MB and 30 ms to load, which few files need.
  const { default: detector } = await import('jschardet');
  const likely = new Map<Legacy, number>();
  for (const text of texts) {
    for (const { encoding, confidence } of detector.detectAll(bytesOf(text), { minimumThreshold: 0 })) {
      const charset = LEGACY[encoding?.toLowerCase() ?? ''];
      if (charset !== undefined) likely.set(charset, (likely.get(charset) ?? 0) + confidence);
    }
  }
  const [best] = [...likely].sort(([, one], [, other]) => other - one);
  return best !== undefined && texts.every((text) => !decoded(text, best[0]).includes('\ufffd'))
    ? best[0]
    : WESTERN;
}
