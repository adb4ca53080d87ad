/**
 * Looks at a segment that has arrived: what it is, how much of it is whole, and what sound it
 * holds.
 */
import { stat } from 'node:fs/promises';
import { MediaFailure } from '../../failure.ts';
import type { Reading } from '../../reading/in-place.ts';
import { readApart } from '../../reading/reader.ts';
import { UnsupportedLayout } from '../../sparse/mp4/boxes.ts';
import { lengthTicks } from '../join/fragment.ts';
import type { Movie } from '../join/movie.ts';
import { movieOf } from '../join/movies.ts';
import type { Held } from './examine.ts';
import type { Sound, Span } from './sound.ts';

/** The header of segments that need one; it is fetched when the first of them asks. */
export type HeaderOf = () => Promise<Uint8Array | undefined>;

/**
 * @param path of its file
 * @throws {MediaFailure} when nothing of it can be joined
 */
export async function examine(path: string, header: HeaderOf, reading: Reading): Promise<Sound> {
  const { size } = await stat(path);
  const { sound, fragments } = await readApart('segment', path, size, reading);
  const init = fragments && (await header());
  const movie = init && (await movieOf(init, reading).catch(failedApart));
  return movie && fragments ? { ...sound, ...heldBy(fragments, movie) } : sound;
}

/** The joiner says what is wrong with it. */
function failedApart(error: unknown): undefined {
  if (!(error instanceof MediaFailure || error instanceof UnsupportedLayout || error instanceof RangeError))
    throw error;
}

function heldBy(held: ReadonlyMap<number, Held>, movie: Movie): Partial<Sound> {
  const spans = movie.tracks.flatMap(({ id, timescale, sampleTicks, isAudio }) => {
    const own = held.get(id);
    if (own === undefined) return [];
    const heldSeconds = lengthTicks(own, sampleTicks) / timescale;
    return [{ isAudio, heldSeconds, startSeconds: (own.startTicks ?? Number.NaN) / timescale }];
  });
  const [sound] = spans.filter(({ isAudio }) => isAudio).sort((a, b) => b.heldSeconds - a.heldSeconds);
  if (sound === undefined) return {};
  const { heldSeconds, startSeconds } = sound;
  const beside: Span[] = spans.filter(({ isAudio, startSeconds: at }) => !isAudio && !Number.isNaN(at));
  return { heldSeconds, startSeconds: Number.isNaN(startSeconds) ? undefined : startSeconds, beside };
}
