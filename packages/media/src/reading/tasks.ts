/**
 * What of a stranger's bytes is read, by kind. What a task takes and returns fits in a message, so
 * it is the same function here and in the process of its own (reader-process.ts). Each loads its
 * parser when it is asked for the first time.
 */
import { readFile } from 'node:fs/promises';
import type { AudioIndex } from '../sparse/mp4/audio-index.ts';
import { UnsupportedLayout } from '../sparse/mp4/boxes.ts';
import type { ByteSource } from '../sparse/mp4/top-level.ts';
import type { Description } from '../streams/description.ts';
import type { LocalFile } from '../truncation.ts';

interface OnDisk {
  readonly path: string;
}

export const tasks = {
  /**
   * A playlist or manifest on the disk, for all outputs of a job: messages of megabytes take long.
   */
  async description({ path, ...rest }: Omit<Description, 'bytes'> & OnDisk) {
    const { readDescription } = await import('../streams/description.ts');
    const { packed } = await import('../streams/presentation.ts');
    const { opened, held } = await readDescription({ ...rest, bytes: await readFile(path) });
    if (!('content' in opened)) return { next: opened, held };
    const { content, isTrack } = opened;
    return { content: 'fileUrl' in content ? content : packed(content), isTrack, held };
  },
  /** A playlist that one of another kind leads to. */
  async playlist({ path, url, isOpenEnded }: Pick<Description, 'url' | 'isOpenEnded'> & OnDisk) {
    const { readPlaylist } = await import('../streams/description.ts');
    const { packed } = await import('../streams/presentation.ts');
    return packed(readPlaylist({ url, isOpenEnded, bytes: await readFile(path) }));
  },
  /** The header of fMP4. */
  async movieHeader(header: Uint8Array) {
    return (await import('../streams/join/movie.ts')).readMovie(header);
  },
  /** The payload of a fragment's box. */
  async fragment(moof: Uint8Array) {
    return (await import('../streams/join/fragment.ts')).runsOf(moof);
  },
  /** @param path of a segment */
  async segment(path: string) {
    return (await import('../streams/segments/examine.ts')).examineFile(path);
  },
  /** Where the sound of an MP4 lies. */
  async movieParts(_: undefined, source: ByteSource) {
    return partsOf(await (await import('../sparse/mp4/audio-index.ts')).readAudioIndex(source));
  },
  async matroskaParts(_: undefined, source: ByteSource) {
    return partsOf(await (await import('../sparse/matroska/audio-index.ts')).readMatroskaIndex(source));
  },
  /** A file on the disk. */
  async missingEnd(file: LocalFile, mostBytes?: number) {
    return (await import('../truncation.ts')).missingEnd(file, mostBytes);
  },
  async encryptedStreams(file: LocalFile, mostBytes?: number) {
    return (await import('../encryption.ts')).encryptedStreams(file, mostBytes);
  },
  /** Instead of ffprobe. */
  async plainFile(file: LocalFile, mostBytes?: number) {
    if (file.demuxer === 'mov') return (await import('../plain-movie.ts')).plainMovie(file, mostBytes);
    return (await import('../plain-audio.ts')).plainAudio(file, mostBytes);
  },
};

/** Of all audio tracks: two hours of a packet each take 0.34 million. */
const MAX_SPANS = 1_000_000;

/** @throws UnsupportedLayout where there are more than are worth a message */
function partsOf({ lead, audioTracks, track }: AudioIndex) {
  const tracks = Array.from({ length: audioTracks }, (_, place) => track(place));
  if ([lead, ...tracks].reduce((sum, { starts }) => sum + starts.length, 0) > MAX_SPANS)
    throw new UnsupportedLayout(`more than ${MAX_SPANS} stretches of sound`);
  return { lead, tracks };
}
