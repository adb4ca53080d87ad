/** Fetches only what a video's audio takes: index, beginnings of all tracks, wanted tracks. */
import type { SourceParts } from 'soundpost-outbound/ranges-parts';
import { united } from 'soundpost-outbound/ranges-spans';
import { MediaFailure } from './failure.ts';
import { type Probe, probe } from './probe.ts';
import { readSourceApart } from './reading/reader.ts';
import { sniffContainer } from './sniff.ts';
import type { SourceRequest } from './source-request.ts';
import { UnsupportedLayout } from './sparse/mp4/boxes.ts';
import { chooseTrack, defaultTrack, partsOf } from './track-choice.ts';

/**
 * ffprobe's answer chooses the tracks, from the index and the beginning of each track.
 * @param path of the local file
 * @returns the answer if the parts are enough; null if the whole file is needed, also to report
 * faults
 */
export async function fetchAudioParts(
  parts: SourceParts,
  path: string,
  { logger, outputs, tools, signal }: SourceRequest,
): Promise<Probe | null> {
  try {
    const container = await sniffContainer(parts);
    const isMatroska = container?.demuxer === 'matroska';
    const reading = { signal, charge: tools.meter, owner: tools.owner };
    const index = await readSourceApart(isMatroska ? 'matroskaParts' : 'movieParts', parts, reading);
    if (!(await parts.fetch(index.lead))) throw new UnsupportedLayout('little would be gained');
    const probed = await probe(tools, path, { signal });
    const chosen = outputs.flatMap(({ track }) => partsOf(chooseTrack(probed, track)));
    const tracks = chosen.length === 0 ? [defaultTrack(probed)] : chosen;
    const places = new Set(tracks.map(({ index }) => index));
    // If ffprobe sees other tracks than the index has, positions among them mean nothing.
    if (probed.tracks.length !== index.tracks.length)
      throw new UnsupportedLayout('audio tracks that are none');
    const wanted = united(...[...places].flatMap((place) => index.tracks[place] ?? []));
    if (!(await parts.fetch(wanted))) throw new UnsupportedLayout('little would be gained');
    return probed;
  } catch (error) {
    if (!(error instanceof UnsupportedLayout || error instanceof MediaFailure)) throw error;
    logger?.debug({ why: error.message }, 'the source is downloaded whole');
    return null;
  }
}
