/** From what is at a stream's address to what should be fetched. */
import { readApart } from '../reading/reader.ts';
import type { Described, Description } from './description.ts';
import { fetchPlaylist, type StreamContext } from './fetch.ts';
import { besidePictures } from './hls/pictures.ts';
import type { OpenedStream } from './presentation.ts';

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
  const sound = await fetchPlaylist(context, url);
  return {
    content: picturesUrl === undefined ? sound : await besidePictures(sound, picturesUrl, context),
    isTrack,
    held,
  };
}
