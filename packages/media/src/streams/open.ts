/** Reads a stream's playlists, and lists the parts to fetch. */
import { OutboundFailed } from 'soundpost-outbound/errors';
import { readApart } from '../reading/reader.ts';
import type { Described, Description } from './description.ts';
import { fetchPlaylist, type StreamContext } from './fetch.ts';
import { besidePictures } from './hls/pictures.ts';
import { CutOff, type OpenedStream, unpacked } from './presentation.ts';

/**
 * @param description in a file of so many bytes
 * @throws {MediaFailure} if nothing in it can be fetched; what fetching a playlist throws
 */
export async function openStream(
  description: Omit<Description, 'bytes'> & { readonly path: string; readonly sizeBytes: number },
  context: StreamContext,
): Promise<OpenedStream & Pick<Described, 'held'>> {
  const { reading } = context;
  const read = await readApart('description', description, description.sizeBytes, reading);
  const { held, next } = read;
  if (next === undefined) {
    const { content, isTrack } = read;
    return { content: 'fileUrl' in content ? content : await unpacked(content), isTrack, held };
  }
  const { url, isTrack, picturesUrl } = next;
  const sound = await fetchPlaylist(context, url).catch((error) => {
    // This playlist was retried already, and the playlist that links to it is whole.
    throw error instanceof CutOff ? new OutboundFailed(error.kind, error.message, false) : error;
  });
  return {
    content: picturesUrl === undefined ? sound : await besidePictures(sound, picturesUrl, context),
    isTrack,
    held,
  };
}
