/** From what is at a stream's address to what should be fetched. */
import type { StreamKind } from './detect.ts';
import { fetchText, type StreamContext } from './fetch.ts';
import { choosePlaylist, isMaster } from './hls/master.ts';
import { parseMedia } from './hls/media.ts';
import { besidePictures } from './hls/pictures.ts';
import { linesOf } from './hls/tags.ts';
import { type OpenedStream, unusable } from './presentation.ts';

/** As it was downloaded. */
interface Description {
  readonly kind: StreamKind;
  readonly text: string;
  /** Its address. */
  readonly url: string;
}

/**
 * Whether two requests mean the same rendition: then what is fetched for one holds the other.
 * @throws {MediaFailure} when there is no such track
 */
export async function isSameRendition(
  { kind, text, url }: Description,
  asked: number | string | undefined,
  other: number | string | undefined,
): Promise<boolean> {
  if (kind === 'dash') {
    const { isSameSound } = await import('./dash/open.ts');
    return isSameSound(text, url, asked, other);
  }
  const lines = linesOf(text);
  return !isMaster(lines) || choosePlaylist(lines, url, asked).url === choosePlaylist(lines, url, other).url;
}

/**
 * @param asked the track: an index or a language
 * @throws {MediaFailure} if nothing in it can be fetched; what fetching a playlist throws
 */
export async function openStream(
  { kind, text, url }: Description,
  asked: number | string | undefined,
  context: StreamContext,
): Promise<OpenedStream> {
  if (kind === 'dash') {
    const { openManifest } = await import('./dash/open.ts');
    return openManifest(text, url, asked);
  }
  const lines = linesOf(text);
  if (!isMaster(lines)) return { content: parseMedia(lines, url), isTrack: false };
  const chosen = choosePlaylist(lines, url, asked);
  const media = await fetchText(context, chosen.url);
  const mediaLines = linesOf(media.text);
  if (isMaster(mediaLines)) throw unusable('the playlist leads to another one that leads on');
  const sound = parseMedia(mediaLines, media.url);
  const { isTrack, picturesUrl } = chosen;
  return {
    content: picturesUrl === undefined ? sound : await besidePictures(sound, picturesUrl, context),
    isTrack,
  };
}
