/** What a stream's description says, for all outputs of a job at once: it is parsed once (pure). */
import { MediaFailure } from '../failure.ts';
import type { StreamKind } from './detect.ts';
import { readMaster } from './hls/master.ts';
import { parseMedia } from './hls/media.ts';
import { tagsOf } from './hls/tags.ts';
import type { OpenedStream } from './presentation.ts';

/** `output.track`: an index, a language, or nothing. */
type AskedTrack = number | string | undefined;

export interface Description {
  readonly kind: StreamKind;
  /** As it was downloaded, UTF-8. */
  readonly bytes: Uint8Array;
  /** Its address. */
  readonly url: string;
  /**
   * Whether its server did not say where it ends: a lost connection ends it, too. Default it did.
   */
  readonly isOpenEnded?: boolean;
  /** Of each output; the rendition of the first is fetched. */
  readonly asked: readonly AskedTrack[];
}

export interface Described {
  readonly opened: OpenedStream | NextPlaylist;
  /** For each track whether it is fetched, or why it cannot be. */
  readonly held: readonly (boolean | Pick<MediaFailure, 'code' | 'details'>)[];
}

/** Another playlist, which lists the segments. */
type NextPlaylist = ReturnType<ReturnType<typeof readMaster>>;

/** The parts to fetch for a track. Two choices are the same if all of their parts are. */
interface Choice {
  readonly parts: readonly unknown[];
  open(): Described['opened'];
}

/** @throws {MediaFailure} when it cannot be read, or has nothing for the first output; {CutOff} */
export async function readDescription({
  kind,
  bytes,
  url,
  isOpenEnded,
  asked,
}: Description): Promise<Described> {
  const text = Buffer.from(bytes).toString('utf8');
  const choose =
    kind === 'dash' ? await chooserOfManifest(text, url) : chooserOfPlaylist(text, url, isOpenEnded);
  const first = choose(asked[0]);
  const known = new Map<AskedTrack, Described['held'][number]>([[asked[0], true]]);
  for (const other of asked) if (!known.has(other)) known.set(other, isHeld(choose, first, other));
  return { opened: first.open(), held: asked.map((other) => known.get(other) ?? false) };
}

function isHeld(
  choose: (asked: AskedTrack) => Choice,
  first: Choice,
  other: AskedTrack,
): Described['held'][number] {
  try {
    const { parts } = choose(other);
    return first.parts.every((part, nth) => part === parts[nth]);
  } catch (error) {
    if (!(error instanceof MediaFailure)) throw error;
    return { code: error.code, details: error.details };
  }
}

/** Of DASH only who has a manifest loads it. */
async function chooserOfManifest(text: string, url: string): Promise<(asked: AskedTrack) => Choice> {
  const { readManifest } = await import('./dash/open.ts');
  return readManifest(text, url);
}

function chooserOfPlaylist(text: string, url: string, isOpenEnded = false): (asked: AskedTrack) => Choice {
  if (!tagsOf(text).has('EXT-X-STREAM-INF')) {
    const content = () => parseMedia(text, url, isOpenEnded);
    return () => ({ parts: [], open: () => ({ content: content(), isTrack: false }) });
  }
  const choose = readMaster(text, url);
  return (asked) => {
    const next = choose(asked);
    return { parts: [next.url], open: () => next };
  };
}

/** @param bytes of a media playlist, @param url its address. @throws as {@link parseMedia} */
export function readPlaylist({
  bytes,
  url,
  isOpenEnded,
}: Pick<Description, 'bytes' | 'url' | 'isOpenEnded'>): ReturnType<typeof parseMedia> {
  return parseMedia(Buffer.from(bytes).toString('utf8'), url, isOpenEnded);
}
