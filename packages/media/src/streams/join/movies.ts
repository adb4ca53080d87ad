/**
 * Headers of fMP4 that are parsed once, as long as somebody holds their bytes: streams alternate
 * two.
 */
import type { Reading } from '../../reading/in-place.ts';
import { readApart } from '../../reading/reader.ts';
import type { Movie } from './movie.ts';

const known = new WeakMap<Uint8Array, Promise<Movie>>();

/** @throws {MediaFailure}; UnsupportedLayout */
export function movieOf(header: Uint8Array, reading: Reading): Promise<Movie> {
  const movie = known.get(header) ?? readApart('movieHeader', header, header.length, reading);
  known.set(header, movie);
  // Another job's signal, or its limit, may have ended it.
  movie.catch(() => known.delete(header));
  return movie;
}
