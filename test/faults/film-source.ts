/** A film of which only the sound is fetched, in parts (packages/outbound/src/ranges.ts), from a source that does not let it go well. */
import { readFile } from 'node:fs/promises';
import { cachedMedia } from 'soundpost-testing/media-cache';
import { type Exchange, head, type Play } from './crooked-source.ts';

/** A film of more than the 8 MiB from which on parts are fetched, most of it picture, and an older version, equally large. */
export async function makeFilms(): Promise<{ film: Buffer; older: Buffer }> {
  const [film, shorter] = await Promise.all([6, 5].map(makeFilm));
  if (film === undefined || shorter === undefined) throw new Error('two films');
  const older = Buffer.concat([shorter, Buffer.alloc(film.length - shorter.length)]);
  // The box at the end takes up what was added.
  const mdat = older.indexOf('mdat') - 4;
  older.writeUInt32BE(older.length - mdat, mdat);
  return { film, older };
}

async function makeFilm(seconds: number): Promise<Buffer> {
  const picture = ['-f', 'lavfi', '-i', 'color=gray:s=320x240:r=25,noise=alls=100:allf=t'];
  const sound = ['-f', 'lavfi', '-i', 'anoisesrc=a=0.2:r=48000'];
  const encode = ['-c:v', 'mjpeg', '-q:v', '2', '-c:a', 'aac', '-movflags', '+faststart'];
  return readFile(await cachedMedia('film.mp4', [...picture, ...sound, '-t', String(seconds), ...encode]));
}

export interface FilmOptions {
  readonly random: () => number;
  /** How many of the parts are cut at a random byte. */
  readonly cuts: number;
  /** Where the first answer, with the beginning of the file, comes from; If-Range is disregarded then. */
  readonly beginning: Buffer;
}

export function filmPlay(film: Buffer, { random, cuts, beginning }: FilmOptions): Play {
  let cutsLeft = cuts;
  return async (exchange) => {
    const version = exchange.nth === 1 ? beginning : film;
    const answer = answerTo(exchange, version, version === film ? '"two"' : '"one"');
    const isCut = exchange.nth > 1 && cutsLeft > 0 && random() < 0.5;
    if (isCut) cutsLeft -= 1;
    await exchange.say(isCut ? answer.subarray(0, Math.floor(random() * answer.length)) : answer);
    exchange.cut();
  };
}

function answerTo({ range }: Exchange, film: Buffer, etag: string): Buffer {
  const version = ['ETag', etag] as const;
  if (range === undefined) {
    return Buffer.concat([Buffer.from(head('200 OK', [['Content-Length', film.length], version])), film]);
  }
  const last = film.length - 1;
  const spans = [...range.matchAll(/(\d+)-(\d*)/g)].map(([, start, end]) => ({
    bytes: film.subarray(Number(start), Number(end || last) + 1),
    place: ['Content-Range', `bytes ${start}-${end || last}/${film.length}`] as const,
  }));
  const [only, ...more] = spans;
  if (only === undefined || more.length > 0) return severalParts(spans, version);
  return Buffer.concat([
    Buffer.from(head('206 Partial Content', [['Content-Length', only.bytes.length], only.place, version])),
    only.bytes,
  ]);
}

/** RFC 9110 §14.6. */
function severalParts(
  spans: readonly { readonly bytes: Buffer; readonly place: readonly [string, string] }[],
  version: readonly [string, string],
): Buffer {
  const boundary = 'between-the-parts';
  const parts = spans.flatMap(({ bytes, place }) => [
    Buffer.from(`\r\n--${boundary}\r\n${place.join(': ')}\r\n\r\n`),
    bytes,
  ]);
  const body = Buffer.concat([...parts, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  const type = ['Content-Type', `multipart/byteranges; boundary=${boundary}`] as const;
  return Buffer.concat([
    Buffer.from(head('206 Partial Content', [['Content-Length', body.length], type, version])),
    body,
  ]);
}
