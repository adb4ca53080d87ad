/** What a file is in which no container was found: a failure names it and says what to do. */
import { startsWith } from './frame-headers.ts';
import type { SniffSource } from './sniff.ts';

const HEAD_BYTES = 4096;

const FREE_DECODER = 'no free decoder';
const OTHER_FILES = 'a format that opens other files';
const NOBODY = 'too rare';

/** Sound that stays out, with its one reason (docs/inputs.md). */
interface LeftOut {
  readonly name: string;
  /** Of file names. Empty for codecs in containers that Soundpost reads. */
  readonly extensions: readonly string[];
  readonly reason: typeof FREE_DECODER | typeof OTHER_FILES | typeof NOBODY;
  /** How such a file begins, where that tells it; `.` stands for any byte. */
  readonly begins?: readonly string[];
  /** Bytes further inside the file, each with its offset. */
  readonly marks?: readonly (readonly [at: number, mark: string])[];
}

export const LEFT_OUT: readonly LeftOut[] = [
  {
    name: 'Playlists and edit lists: M3U without segments, PLS, XSPF, cue sheets, ffconcat',
    extensions: ['m3u', 'pls', 'xspf', 'cue', 'ffconcat'],
    reason: OTHER_FILES,
  },
  {
    name: 'MIDI and tracker modules, which contain notes instead of audio',
    extensions: ['mid', 'mod', 'xm', 'it', 's3m'],
    reason: OTHER_FILES,
    begins: ['MThd', 'RIFF....RMID', 'Extended Module: ', 'IMPM'],
    marks: [[44, 'SCRM'], ...['M.K.', '4CHN', '6CHN', '8CHN', 'FLT4'].map((mark) => [1080, mark] as const)],
  },
  { name: 'AC-4', extensions: ['ac4'], reason: FREE_DECODER, begins: ['\xac\x40', '\xac\x41'] },
  { name: 'MPEG-H 3D Audio', extensions: ['mhas'], reason: FREE_DECODER, begins: ['\xc0\x01\xa5'] },
  { name: 'Apple Positional Audio (APAC)', extensions: [], reason: FREE_DECODER },
  { name: 'Immersive Audio (IAMF)', extensions: ['iamf'], reason: NOBODY, begins: ['\xf8.iamf'] },
  {
    name: 'ATRAC3plus, ATRAC9 and other OpenMG codecs',
    extensions: ['oma', 'aa3', 'at3', 'at9'],
    reason: NOBODY,
    begins: ['ea3\x03', 'EA3\x01'],
  },
  { name: 'Flash movies', extensions: ['swf'], reason: NOBODY, begins: ['CWS', 'FWS', 'ZWS'] },
  { name: 'Ringtones in SMAF', extensions: ['mmf'], reason: NOBODY, begins: ['MMMD'] },
  {
    name: 'Audio of games: ADX, BRSTM, VAG, HCA, Bink, Smacker and others',
    extensions: ['adx', 'brstm', 'vag', 'hca', 'bik', 'smk'],
    reason: NOBODY,
    begins: ['\x80\0..\x03\x12\x04', 'RSTM\xfe\xff', 'VAGp', 'HCA\0', 'BIK', 'KB2', 'SMK2', 'SMK4'],
  },
  {
    name: 'Audio of old computers: IRCAM, NIST SPHERE, 8SVX, PVF, QDesign Music 1',
    extensions: ['sf', 'nist', 'sph', '8svx', 'pvf'],
    reason: NOBODY,
    begins: ['\x64\xa3.\0', '\0.\xa3\x64', 'NIST_1A', 'FORM....8SVX', 'PVF1', 'PVF2'],
  },
  {
    name: 'GSM, G.722, G.726, SBC and aptX without a container',
    extensions: ['gsm', 'g722', 'g726', 'sbc', 'aptx'],
    reason: NOBODY,
  },
];

interface OtherFile {
  /** Bytes as above; for text, an expression to match after comments and whitespace. */
  readonly begins: readonly string[] | RegExp;
  readonly name: string;
  /** What to do. */
  readonly remedy: string;
}

const FILE_ITSELF = 'use the URL of the file itself, or upload the file';
const SHARED_FILE = `${FILE_ITSELF}. A share link must lead straight to the file (Dropbox: dl=1 instead of dl=0; Google Drive: /uc?export=download&id=ID); behind a sign-in, send source.headers`;
const FILE_INSIDE = 'unpack it and use the file inside';
const PLAYS_IT = 'use the URL of a file that it lists';
const ANOTHER = 'choose another file';

/** The first that fits names the file. */
const OTHERS: readonly OtherFile[] = [
  {
    begins: /^(<\?xml[^>]*>\s*)?<(!doctype html|html|head|body|script|meta)\b/i,
    name: 'a web page',
    remedy: SHARED_FILE,
  },
  { begins: /^#EXTM3U/, name: 'a playlist', remedy: 'use the URL of the playlist' },
  { begins: /^(<\?xml[^>]*>\s*)?<(\w+:)?MPD\b/, name: 'a manifest', remedy: 'use the URL of the manifest' },
  {
    begins: /^(\[playlist\]|ffconcat version|(<\?xml[^>]*>\s*)?<playlist\b)/i,
    name: 'a playlist',
    remedy: PLAYS_IT,
  },
  { begins: /^(REM|PERFORMER|TITLE|FILE) .*\bTRACK \d\d /s, name: 'a cue sheet', remedy: PLAYS_IT },
  { begins: /^(WEBVTT|1\r?\n\d\d:\d\d:\d\d,\d{3} -->)/, name: 'subtitles', remedy: ANOTHER },
  { begins: /^(<\?xml[^>]*>\s*)?(<!doctype svg[^>]*>\s*)?<svg\b/i, name: 'a picture', remedy: ANOTHER },
  { begins: /^<(\?xml|[a-z])/i, name: 'an XML document', remedy: FILE_ITSELF },
  { begins: /^(\{\s*["}]|\[\s*[[{\]"\d])/, name: 'a JSON document', remedy: FILE_ITSELF },
  { begins: ['%PDF-'], name: 'a PDF document', remedy: ANOTHER },
  { begins: ['PK\x03\x04', 'PK\x05\x06'], name: 'a ZIP archive', remedy: FILE_INSIDE },
  {
    begins: ['Rar!\x1a', '7z\xbc\xaf\x27\x1c', '\x1f\x8b\x08', 'BZh', '\xfd7zXZ\0', '\x28\xb5\x2f\xfd'],
    name: 'an archive',
    remedy: FILE_INSIDE,
  },
  {
    begins: [
      '\x89PNG',
      '\xff\xd8\xff',
      'GIF8',
      'RIFF....WEBP',
      'BM....\0\0\0\0',
      'II*\0',
      'MM\0*',
      '8BPS',
      '\0\0\x01\0',
    ],
    name: 'a picture',
    remedy: ANOTHER,
  },
  { begins: ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'], name: 'an Office document', remedy: ANOTHER },
  {
    begins: /^d\d{1,3}:(announce|created by|info)/,
    name: 'a torrent',
    remedy: 'use the file that it fetches',
  },
  {
    begins: ['\x7fELF', 'MZ\x90\0', '\xca\xfe\xba\xbe', '\xcf\xfa\xed\xfe'],
    name: 'a program',
    remedy: ANOTHER,
  },
];

/**
 * A sentence for callers.
 * @param source in which no container was found
 */
export async function nameOther(source: SniffSource): Promise<string> {
  if (source.sizeBytes === 0) return 'the file is empty; check that it was saved, then send it again';
  const bytes = await source.read(0, Math.min(HEAD_BYTES, source.sizeBytes));
  const isOne = (begins: readonly string[]): boolean => begins.some((magic) => startsWith(bytes, 0, magic));
  const head = Buffer.from(bytes).toString('latin1');
  const text = head
    .replace(/^\xef\xbb\xbf/, '')
    .replaceAll(/<!--.*?-->/gs, '')
    .trimStart();
  const other = OTHERS.find(({ begins }) => (begins instanceof RegExp ? begins.test(text) : isOne(begins)));
  if (other !== undefined) return `the file is ${other.name}, not a media file: ${other.remedy}`;
  const leftOut = LEFT_OUT.find(
    ({ begins = [], marks = [] }) => isOne(begins) || marks.some(([at, mark]) => startsWith(bytes, at, mark)),
  );
  if (leftOut !== undefined)
    return `not supported: ${leftOut.name} (${leftOut.reason}); convert the file with another program first`;
  if (bytes.every((byte) => byte >= 0x20 || (byte >= 9 && byte <= 13)))
    return `the file is text, not a media file: ${FILE_ITSELF}`;
  return 'the file is not in a known container; check that it plays, or convert it first';
}
