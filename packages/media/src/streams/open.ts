/** From what is at a stream's address to what should be fetched. */
import { OutboundFailed } from 'soundpost-outbound/errors';
import { readApart } from '../reading/reader.ts';
import type { Described, Description } from './description.ts';
import { fetchPlaylist, type StreamContext } from './fetch.ts';
import { besidePictures } from './hls/pictures.ts';
import { CutOff, type OpenedStream } from './presentation.ts';

/**
 * @throws {MediaFailure} if nothing in it can be fetched; what fetching a playlist throws
 */
export async function openStream(
  description: Description,
  context: StreamContext,
): Promise<OpenedStream & Pick<Described, 'held'>> {
  const { reading } = context;
  const { opened, held } = await readApart('description', description, description.bytes.length, reading);
  if ('content' in opened) return { ...opened, held };
  const { url, isTrack, picturesUrl } = opened;
  const sound = await fetchPlaylist(context, url).catch((error) => {
    // It was asked for again; the one that leads to it is whole.
    throw error instanceof CutOff ? new OutboundFailed(error.kind, error.message, false) : error;
  });
  return {
    content: picturesUrl === undefined ? sound : await besidePictures(sound, picturesUrl, context),
    isTrack,
    held,
  };
}
